#include "base/digest.h"

#include <fcntl.h>
#include <sodium.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

namespace ep {

namespace {
constexpr size_t kPieceBytes = 1u << 18;

std::string hex(const unsigned char (&hash)[crypto_hash_sha256_BYTES]) {
  static_assert(crypto_hash_sha256_BYTES * 2 == kSha256HexChars);
  char text[kSha256HexChars + 1];
  sodium_bin2hex(text, sizeof text, hash, sizeof hash);
  return text;
}
}  // namespace

std::string sha256_hex(std::string_view bytes) {
  unsigned char hash[crypto_hash_sha256_BYTES];
  crypto_hash_sha256(hash, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  return hex(hash);
}

Result<std::string> sha256_file(const std::string& path) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    auto kind = errno == ENOENT || errno == ENOTDIR ? ErrorKind::absent : ErrorKind::unreadable;
    return fail(kind, "cannot open the file", path, strerror(errno));
  }
  crypto_hash_sha256_state state;
  crypto_hash_sha256_init(&state);
  std::vector<unsigned char> piece(kPieceBytes);
  for (;;) {
    ssize_t n = read(fd, piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      int saved = errno;
      close(fd);
      return fail(ErrorKind::unreadable, "cannot read the file", path, strerror(saved));
    }
    if (n == 0) break;
    crypto_hash_sha256_update(&state, piece.data(), (unsigned long long)n);
  }
  close(fd);
  unsigned char hash[crypto_hash_sha256_BYTES];
  crypto_hash_sha256_final(&state, hash);
  return hex(hash);
}

bool is_sha256_hex(std::string_view text) {
  return text.size() == kSha256HexChars &&
         text.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}

}  // namespace ep
