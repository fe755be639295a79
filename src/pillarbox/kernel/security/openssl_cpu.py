"""The processor features that OpenSSL is told of, so that signing mail uses its fastest code.

OpenSSL has two ways to raise numbers of 1,024 bits to a power, which is nearly all of an RSA-2048 signature:
by ADX, and by AVX2. Where a processor has both it takes ADX, the faster one on the processors that it was
written for. On AMD's since Zen 3 AVX2 takes six to nine tenths of the time (bench/MEASUREMENTS.md, 1).
OpenSSL reads the features from its environment when it is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")
VARIABLE = "OPENSSL_ia32cap"
WITHOUT_ADX = ":~0x80000"
"""The bits of CPUID leaf 7 as they are, but for bit 19 of EBX."""

VENDOR = "AuthenticAMD"
NEEDED = frozenset({"adx", "bmi2", "avx2", "vaes"})
"""VAES came with Zen 3."""

BETTER = "avx512ifma"
"""With it OpenSSL has a third way, which it takes first."""


def variables(environment: Mapping[str, str], cpuinfo: Path = CPUINFO) -> dict[str, str]:
    """Return the variable for a process that will sign; nothing where it would not help, or has been
    set already."""
    if VARIABLE in environment:
        return {}
    return {VARIABLE: WITHOUT_ADX} if _is_faster_without(_first(cpuinfo)) else {}


def _is_faster_without(facts: Mapping[str, str]) -> bool:
    flags = frozenset(facts.get("flags", "").split())
    return facts.get("vendor_id") == VENDOR and flags >= NEEDED and BETTER not in flags


def _first(cpuinfo: Path) -> dict[str, str]:
    """Return the kernel's facts about the first processor; nothing on other systems."""
    facts: dict[str, str] = {}
    try:
        with cpuinfo.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                name, _, value = line.partition(":")
                if not name.strip():
                    break
                facts[name.strip()] = value.strip()
    except OSError:
        return {}
    return facts
