// The units of the whole project: bytes, addresses and simulated time, all of them integers.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace vramlab {

/// A size in bytes. Never negative; differences that may be are `std::int64_t`.
using Bytes = std::uint64_t;

/// A device address.
using Address = std::uint64_t;

/// A point in simulated time, or a span of it, in whole nanoseconds.
using SimTime = std::chrono::nanoseconds;

// 1 KiB = 1,024 B: memory is always counted in powers of two here.
constexpr Bytes operator""_KiB(unsigned long long n) { return n << 10; }
constexpr Bytes operator""_MiB(unsigned long long n) { return n << 20; }
constexpr Bytes operator""_GiB(unsigned long long n) { return n << 30; }

/// `n` rounded up to a multiple of `unit` (unit > 0; the result must fit 64 bits).
constexpr Bytes round_up(Bytes n, Bytes unit) { return (n + unit - 1) / unit * unit; }

/// Reads "24GiB", "512 MiB", "7.93 GiB" as PyTorch prints it (rounded to the nearest byte), "64KiB" or a
/// plain number of bytes ("1048576", "100B"). Empty if `text` is anything else, is negative, names a part of
/// a byte ("0.3B"), or exceeds 2^60.
std::optional<Bytes> parse_bytes(std::string_view text);

/// A size for people, in the largest unit that keeps it at or above one: "512 B", "2.0 MiB", "21.9 GiB".
std::string format_bytes(Bytes size);

/// Seconds as a floating-point number, for output only. Divided, not multiplied by 1e-9: whole seconds stay
/// whole.
constexpr double to_seconds(SimTime time) { return static_cast<double>(time.count()) / 1e9; }

/// The whole nanoseconds nearest to `seconds`, which is cut to ±9.2e9 (292 years).
SimTime from_seconds(double seconds);

}  // namespace vramlab
