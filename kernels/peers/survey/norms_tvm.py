# SPDX-License-Identifier: Apache-2.0
# left out: apache-tvm 0.27.0.post1 installs; its norms are not declared yet
