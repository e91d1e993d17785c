"""Loading a file into TensorFlow Lite's interpreter."""

from __future__ import annotations

import os
from typing import Any

from deepcruiser.errors import FileError, InputError
from deepcruiser.files.trial import check_loads


def load_interpreter(content: bytes, path: str | os.PathLike[str], *, extra: str, keep_tensors: bool = False) -> Any:
    """An interpreter with a file's content; `keep_tensors` lets every inner tensor be read after a run.

    `extra` is the extra of this package that brings ai-edge-litert.
    """
    try:
        from ai_edge_litert.interpreter import Interpreter, OpResolverType
    except ImportError:
        raise InputError(
            f"{os.fspath(path)!r} needs the package ai-edge-litert: pip install 'deepcruiser[{extra}]'"
        ) from None
    options: dict[str, Any] = {}
    if keep_tensors:
        options["experimental_preserve_all_tensors"] = True
        # Without delegates, which run several operations as one and hide the tensors between them.
        options["experimental_op_resolver_type"] = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    check_loads("tflite", path, name="TensorFlow Lite")
    try:
        interpreter = Interpreter(model_content=content, **options)
        interpreter.allocate_tensors()
        interpreter.get_tensor_details(), interpreter.get_signature_list()  # names that are not UTF-8 raise here
    except Exception as error:  # a missing operator, another version, damage; names that are not UTF-8
        reason = next(iter(str(error).strip().splitlines()), "unknown reason")
        raise FileError(
            f"{os.fspath(path)!r} cannot be loaded by TensorFlow Lite: {reason} (custom operators are not loaded)"
        ) from None
    return interpreter
