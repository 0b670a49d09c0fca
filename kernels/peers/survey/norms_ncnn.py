# SPDX-License-Identifier: Apache-2.0
# left out: ncnn 1.0.20261020 installs; its layers take their weights from a model, and are not declared yet
