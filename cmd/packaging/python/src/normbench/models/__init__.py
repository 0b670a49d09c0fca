# SPDX-License-Identifier: Apache-2.0
"""The models of the claims in PyTorch: the normalizations as their sources print them, in models of the sources' sizes.

`python -m normbench.models` is the worker that `normbench claims` starts: a request on standard input, answers on standard output
(worker.py). Nothing here is imported by `import normbench`, and nothing but the worker's own face needs no PyTorch.

    classes.py     the normalizations; bound.py: those of libnormkernels.so
    draws.py       first values and data by seed, name and number, the same on every machine
    data.py        bytes and words of a text, questions about it, drawn images
    transformer.py, recurrent.py, convpool.py     the models; workloads.py: their sizes, and what an arm may ask of them
    measure.py     steps, memory, a course of training
"""
