# SPDX-License-Identifier: Apache-2.0
# left out: ai-edge-litert 2.3.0 installs; its norms are not declared yet
