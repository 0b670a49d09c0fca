# SPDX-License-Identifier: Apache-2.0
# left out: chainer 7.8.1 has no wheel for Python 3.11, and its source does not build there
