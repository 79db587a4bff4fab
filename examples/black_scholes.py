"""European option prices by the Black-Scholes formula, one option a thread."""

import math
import sys

import numpy as np
from report import Report

import compiler as cuda

RATE = 0.02
VOLATILITY = 0.30


@cuda.jit(device=True)
def cumulative_normal(x):
    """The probability that a standard normal variable is below x."""
    return 0.5 * math.erfc(-x * 0.7071067811865476)


@cuda.jit
def black_scholes(call, put, spot, strike, years):
    """Prices of a call and a put for each option."""
    i = cuda.grid(1)
    if i >= call.size:
        return
    s, k, t = spot[i], strike[i], years[i]
    spread = VOLATILITY * math.sqrt(t)
    d1 = (math.log(s / k) + (RATE + 0.5 * VOLATILITY * VOLATILITY) * t) / spread
    d2 = d1 - spread
    discounted = k * math.exp(-RATE * t)
    call[i] = s * cumulative_normal(d1) - discounted * cumulative_normal(d2)
    put[i] = discounted * cumulative_normal(-d2) - s * cumulative_normal(-d1)


def reference(spot, strike, years):
    """The same prices by NumPy, in float64."""
    s, k, t = (a.astype(np.float64) for a in (spot, strike, years))
    normal = np.vectorize(lambda x: 0.5 * math.erfc(-x * math.sqrt(0.5)), otypes=[np.float64])
    spread = VOLATILITY * np.sqrt(t)
    d1 = (np.log(s / k) + (RATE + 0.5 * VOLATILITY**2) * t) / spread
    n1, n2 = normal(d1), normal(d1 - spread)
    discounted = k * np.exp(-RATE * t)
    return s * n1 - discounted * n2, discounted * (1 - n2) - s * (1 - n1)


def main() -> bool:
    """Price 2**20 options; True if NumPy agrees."""
    n = 2**20
    random = np.random.default_rng(2)
    spot = random.uniform(5, 30, n).astype(np.float32)
    strike = random.uniform(1, 100, n).astype(np.float32)
    years = random.uniform(0.25, 10, n).astype(np.float32)
    report = Report(f"Black-Scholes, {n:,} options in float32")
    inputs = [cuda.to_device(a) for a in (spot, strike, years)]
    call, put = cuda.device_array_like(inputs[0]), cuda.device_array_like(inputs[0])
    block = 256
    grid = (n + block - 1) // block
    report.time(lambda: black_scholes[grid, block](call, put, *inputs))
    want_call, want_put = reference(spot, strike, years)
    # Prices up to 100 are differences of float32 terms of that size: a few units of their rounding.
    report.check(call.copy_to_host(), want_call, rtol=1e-5, atol=5e-5)
    report.check(put.copy_to_host(), want_put, rtol=1e-5, atol=5e-5)
    return report.finish()


if __name__ == "__main__":
    sys.exit(not main())
