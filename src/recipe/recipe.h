// The product's knowledge of stacks, as read from data/: components with releases and rules, stacks,
// platforms, baselines. Values only; what they mean for a host is src/plan's business. Keys of the files:
// data/VOCABULARY.md.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "base/version.h"
#include "recipe/condition.h"

namespace ep {

/// A sentence in both languages, owned.
struct Phrase {
  std::string en, zh;
  const std::string& in(Lang lang) const { return lang == Lang::zh && !zh.empty() ? zh : en; }
  bool empty() const { return en.empty(); }
};

/// Where a statement comes from.
struct Citation {
  std::string url;   ///< https address, or the name of a requirement document
  std::string date;  ///< YYYY-MM-DD, YYYY-MM or YYYY
  std::string says;  ///< one phrase: what it proves
};

/// One version of a component, with what it brings and where it is had from.
struct Release {
  std::string version;                      ///< "3.5.19", "1.2.1+29d31c0"
  std::string date;                         ///< YYYY-MM of publication, when known
  std::vector<std::string> traits;          ///< "cuda12", "rc-fix", "buffer": what rules ask with has / lacks
  std::map<std::string, std::string> pins;  ///< what it forces by its own metadata: nvshmem -> 3.3.20
  std::string git_commit;             ///< full 40 digits; empty: not known, a build from git must be told
  std::string git_ref;                ///< tag or ref that the commit belongs to
  std::string requirement;            ///< pip requirement; {cuda.major} filled in
  std::vector<std::string> wheels;    ///< "FILE.whl SHA256" of the package index, one a platform and Python
  std::vector<std::string> archives;  ///< "FILE.tar.xz SHA256" of the publisher, one a platform and toolkit
  std::string index_url;              ///< pip index when not the default one; {cuda.tag} filled in
  std::vector<std::string> packages;  ///< distribution packages; {cuda-dash} = "12-9"
  std::string apt_repo;               ///< id of an [[apt]] table of the component
  std::string image;                  ///< toolkits: container image that holds this version with its compiler
  Phrase note;
  std::vector<Citation> sources;
  std::string place;  ///< file:line
};

/// A package repository of a vendor. {os}, {arch} in the address are filled from facts.
struct AptRepo {
  std::string id, uri, suite, components, key_url, key_sha256, key_fingerprint;
  std::vector<Citation>
      sources;  ///< where the fingerprint is from; a pinned key that nobody vouches for is none
};

/// What must hold among chosen versions, options and facts. `when` all true and a `need` false: broken.
struct Rule {
  std::string id;
  bool forbids = true;  ///< false: warns only
  std::vector<Condition> when, need;
  Phrase text;    ///< why, one sentence
  Phrase change;  ///< the smallest change that mends it
  std::vector<Citation> sources;
  std::string place, component;
};

struct Component {
  std::string id;
  Phrase title;
  std::string kind;  ///< system, toolkit, wheel, git, tool, consumer
  VersionOrder order = VersionOrder::dotted;
  std::string git_url;
  std::vector<Release> releases;  ///< best first
  std::vector<AptRepo> apt;
  std::map<std::string, std::vector<std::string>> lists;  ///< named lists: cmake options, packages
  std::vector<Rule> rules;
  std::string file;
  const Release* release(std::string_view version) const;
};

struct Stack {
  std::string id;
  Phrase title;
  std::string lane;  ///< local, v1, v2
  std::vector<std::string> consumers;
  std::vector<std::string> platforms;  ///< platform ids; "any" = every one
  int rank = 100;                      ///< smaller is preferred where several fit
  std::vector<Condition> when;         ///< facts that it is made for
  std::vector<std::string> parts;      ///< components in the order of work
  std::map<std::string, std::string> pins;
  std::map<std::string, std::string> options;
  std::map<std::string, std::string> phases;  ///< component -> phase of the runbook
  Phrase proven;                              ///< how far it has been run, by whom
  std::vector<Citation> sources;
  std::string file;
};

/// A line that a pod's specification needs, at a dotted place.
struct PodLine {
  std::string at, yaml;
  std::vector<Condition> unless;  ///< any of them true: the pod has it
  Phrase why;
};

struct Platform {
  std::string id;
  Phrase title;
  int rank = 100;
  std::vector<Condition> when;         ///< all true: this is it
  std::map<std::string, Phrase> skip;  ///< component -> why the platform makes it unnecessary
  std::vector<PodLine> pod;
  std::string image;         ///< container image with nvcc that its pods are known to run
  std::string image_cuda;    ///< version of its toolkit
  std::string gib_dir;       ///< where its pods see gIB's folder
  std::string library_path;  ///< LD_LIBRARY_PATH of its pods: the node's driver libraries
  /// Commands that make a disk image and machines from it, in order; "#" begins a remark. NAMES are the
  /// user's.
  std::vector<std::string> disk_image;
  std::vector<Phrase> notes;
  std::vector<Citation> sources;
  std::string file;
};

/// A published figure: a reference, never a threshold by itself.
struct Baseline {
  std::string id, lane, op, scope;  ///< op: dispatch, combine; scope: nvlink, rdma, total
  std::string gpu, nic, version;
  int nodes = 1, ranks = 8, tokens = 0, hidden = 0, topk = 0, experts = 0, sms = 0;
  std::string dtype;
  double gbps = 0;        ///< GB/s = 1e9 bytes a second
  double latency_us = 0;  ///< 0: not given
  std::string bandwidth;  ///< logical or wire
  Citation source;
  std::string place;
};

/// One wheel of a closed set.
struct LockedWheel {
  std::string requirement;  ///< "numpy==2.2.6"
  std::string marker;       ///< for which Pythons and machines, as requirement files say it; empty: all
  std::vector<std::string> files;  ///< "FILE.whl SHA256"
};
/// Everything that the package index brings in for a requirement, closed under dependencies, the large ones
/// first: installed as it stands here, whatever the index says later.
struct WheelSet {
  std::string id, of;  ///< of: "torch==2.13.0"
  std::vector<LockedWheel> wheels;
  std::vector<Citation> sources;
  std::string file;
};

struct Recipe {
  std::vector<Component> components;  ///< sorted by id
  std::vector<Stack> stacks;          ///< sorted by rank, then id
  std::vector<Platform> platforms;    ///< sorted by rank, then id
  std::vector<Baseline> baselines;    ///< sorted by id
  std::vector<WheelSet> wheel_sets;   ///< sorted by id
  const Component* component(std::string_view id) const;
  const Stack* stack(std::string_view id) const;
  const Platform* platform(std::string_view id) const;
  const WheelSet* wheel_set(std::string_view of) const;
};

/// Everything that is wrong with data/, in file order; empty: `out` is complete. Names that conditions use
/// are checked against components, options and `known_names` (facts).
std::vector<Error> load_recipe_all(const std::string& override_dir,
                                   const std::vector<std::string>& known_names, Recipe& out);
/// The same with the first complaint as the error, and how many more there are.
Result<Recipe> load_recipe(const std::string& override_dir, const std::vector<std::string>& known_names = {});

}  // namespace ep
