# SPDX-License-Identifier: Apache-2.0
from .worker import main

main()
