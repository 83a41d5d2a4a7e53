// Pseudonyms: addresses, names, serial numbers, tokens and users of a text replaced by stand-ins that keep
// their shape and stay the same through all texts of a bundle, so that the evidence can still be read (same
// subnet, same host). The map stays with the user. Pure. No promise of anonymity: the preview is for the
// user's own eyes.
#pragma once
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace ep {

class Pseudonyms {
 public:
  /// A name known from elsewhere (the host's own): replaced as a whole word.
  void know_host(const std::string& name);
  void know_user(const std::string& name);
  /// Finds names that only some lines show to be names (prompts, NCCL tags, home folders). Call for every
  /// text first.
  void learn(std::string_view text);
  std::string replace(std::string_view text);
  /// The stand-in of a host name, for a place where it is known to stand alone.
  std::string host(const std::string& name) { return stand_in("host", name); }
  /// Only host and user names, as whole words: for paths, whose digits mean something.
  std::string replace_names(std::string_view text) const;

  struct Entry {
    std::string what;  ///< ipv4 ipv6 mac guid gid uuid host user email token serial ...
    std::string original, stand_in;
  };
  /// In order of first appearance.
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  const std::string& stand_in(const std::string& what, const std::string& original);
  std::string make(const std::string& what, const std::string& original);
  std::string ipv4(const std::string& address);

  std::map<std::pair<std::string, std::string>, std::string> map_;
  std::vector<Entry> entries_;
  std::set<std::string> stand_ins_;  ///< never replaced again
  std::map<std::string, int> counts_, subnets_;
  std::map<std::string, std::map<std::string, int>> hosts_in_subnet_;
  std::map<std::string, std::string> words_;  ///< host and user names, whole words
};

}  // namespace ep
