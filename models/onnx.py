"""How onnxruntime is set up here: small. The arena and the memory pattern keep the largest tensors of
the largest input for ever; spinning threads take a core that another process of the board needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def session(path: Path, threads: int) -> Any:
    """An InferenceSession on the CPU. Raises onnxruntime's errors for a file that is no model."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(3)
    options = onnxruntime.SessionOptions()
    options.enable_cpu_mem_arena = False
    options.enable_mem_pattern = False
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
