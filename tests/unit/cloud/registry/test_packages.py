"""What an upload announces."""

from __future__ import annotations

import pytest
from viam.gen.app.packages.v1 import packages_pb2 as pb

from cogwork.cloud.registry.packages import check_package
from cogwork.core.errors import InvalidRequest


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_metadata_that_is_not_json_is_refused(number: float) -> None:
    info = pb.PackageInfo(name="drive", version="1.0.0", type=pb.PACKAGE_TYPE_MODULE)
    info.metadata.update({"size": number})
    with pytest.raises(InvalidRequest, match="cannot be written as JSON"):
        check_package(info, 0)
