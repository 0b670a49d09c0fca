# SPDX-License-Identifier: Apache-2.0
# left out: nnabla has no wheel for Python 3.11
