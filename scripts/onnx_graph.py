"""A builder of ONNX graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import (
    ModelProto,
    NodeProto,
    TensorProto,
    ValueInfoProto,
    checker,
    helper,
    numpy_helper,
)

OPSET, IR_VERSION = 17, 8
"""Opset and IR versions that every recent runtime supports."""


@dataclass(slots=True)
class OnnxGraph:
    nodes: list[NodeProto] = field(default_factory=list)
    constants: list[TensorProto] = field(default_factory=list)

    def constant(self, value: Any, dtype: type[np.generic] = np.float32) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def add(self, operation: str, *inputs: str, name: str | None = None, **options: Any) -> str:
        """Add an operation and return the name of its output: `name`, or a generated one."""
        return self.add_multi_output(operation, *inputs, names=[name] if name else None, **options)[
            0
        ]

    def add_multi_output(
        self, operation: str, *inputs: str, names: list[str] | None = None, **options: Any
    ) -> list[str]:
        names = names or [f"{operation.lower()}_{len(self.nodes)}"]
        self.nodes.append(helper.make_node(operation, inputs, names, **options))
        return names

    def model(
        self,
        name: str,
        inputs: Sequence[ValueInfoProto],
        outputs: Sequence[ValueInfoProto],
        metadata: Mapping[str, str] | None = None,
        description: str = "",
    ) -> ModelProto:
        made = helper.make_model(
            helper.make_graph(self.nodes, name, inputs, outputs, self.constants),
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="cogwork",
            doc_string=description,
        )
        helper.set_model_props(made, dict(metadata or {}))
        checker.check_model(made, full_check=True)
        return made
