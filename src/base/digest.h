// SHA-256 of bytes and files, by libsodium. Used for pinned downloads, changed-file detection and lock files.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace ep {

constexpr size_t kSha256HexChars = 64;

/// 64 lower-case hexadecimal digits.
std::string sha256_hex(std::string_view bytes);
/// The same of a file's content, read in pieces. Errors: absent, unreadable.
Result<std::string> sha256_file(const std::string& path);
/// True for exactly 64 hexadecimal digits: what data may give as a hash.
bool is_sha256_hex(std::string_view text);

}  // namespace ep
