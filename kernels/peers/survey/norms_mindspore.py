# SPDX-License-Identifier: Apache-2.0
# left out: mindspore 2.10.0 installs; its norms are not declared yet
