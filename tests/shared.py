"""Where the development data lies, for the tests that want it; they skip where it is absent."""

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the development data (../shared) is not here")
