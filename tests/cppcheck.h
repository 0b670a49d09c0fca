// SPDX-License-Identifier: Apache-2.0
/* What the static analyser does not read in system headers. */
#define cJSON_ArrayForEach(element, array) for (element = (array)->child; element; element = element->next)
