// What pip and uv say, in our words and with the act that helps.
#include <algorithm>

#include "apply/actions.h"
#include "base/text.h"

namespace ep {
namespace {

/// The word after `mark` up to the end of its line.
std::string after(const std::string& text, std::string_view mark) {
  const size_t at = text.find(mark);
  if (at == std::string::npos) return {};
  const size_t begin = at + mark.size();
  return std::string(trim(text.substr(begin, text.find('\n', begin) - begin)));
}

}  // namespace

Error explain_pip(Error e, const std::string& venv) {
  if (e.kind == ErrorKind::interrupted) return e;
  const std::string& said = e.why;
  const auto any = [&](std::initializer_list<const char*> words) {
    return std::any_of(words.begin(), words.end(), [&](const char* w) { return icontains(said, w); });
  };
  const auto call = [&](std::string what, std::string next) {
    e.what = std::move(what);
    if (!e.next.empty()) e.trace.push_back("its log: " + e.next);
    e.next = std::move(next);
    return e;
  };
  std::string wanted = after(said, "No matching distribution found for ");
  // uv: "Because NAME was not found in the package registry and you require NAME==1, we can conclude ..."
  if (wanted.empty() && icontains(said, "No solution found")) {
    wanted = after(said, "you require ");
    wanted = wanted.substr(0, wanted.find_first_of(", "));
  }
  if (any({"No space left on device", "Errno 28"}))
    return call(
        "the disk is full; the environment is as it was",
        "df -h " + shell_quote(venv) + " ${TMPDIR:-/tmp}  (PyTorch with its libraries takes about 6 GB)");
  if (any({"DO NOT MATCH THE HASHES", "hash mismatch"}))
    return call("the index gave a wheel with another SHA-256; nothing of it was installed",
                "compare with its publisher; a mirror is named with --mirror FROM=TO");
  if (any({"Failed to establish a new connection", "Connection refused", "Name or service not known",
           "Temporary failure in name resolution", "Max retries exceeded", "Read timed out", "ProxyError",
           "CERTIFICATE_VERIFY_FAILED", "error sending request", "Could not fetch URL",
           "Network is unreachable", "Connection reset", "NewConnectionError", "ConnectTimeout"}))
    return call("the package index cannot be reached; the environment is as it was",
                "check network and proxy, or name a mirror: epready apply --mirror FROM=TO; without network: "
                "epready apply --offline DIR");
  if (any({"is not a supported wheel on this platform", "requires a different Python", "Requires-Python",
           "no wheels with a matching", "not compatible with the current platform"}))
    return call(
        "a wheel is for another Python or machine; the environment is as it was",
        venv +
            "/bin/python --version  (another one: uv python install 3.12, then apply with it first in PATH)");
  if (!wanted.empty())
    return call("the index has no " + wanted + " for this Python and machine; the environment is as it was",
                venv + "/bin/python -m pip index versions " +
                    shell_quote(wanted.substr(0, wanted.find_first_of("=<>!~ "))));
  if (any({"No module named pip", "No virtual environment", "Failed to inspect Python",
           "No such file or directory", "cannot execute", "not found", "ModuleNotFoundError"}) ||
      e.kind == ErrorKind::absent)
    return call("the Python environment is broken: its own Python or pip does not run",
                "mv " + shell_quote(venv) + " " + shell_quote(venv + ".broken") +
                    ", then apply again: it is made anew");
  return e;
}

}  // namespace ep
