#include "report/facts_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "facts/fields.h"
#include "report/fact_words.h"

namespace ep {

namespace {

// Long lists that a first look shows as a count.
const std::set<std::string_view> kLong = {"pci", "packages", "apt_sources", "counters", "gids", "matrices"};
// Lists that a first look shows as names with versions.
const std::set<std::string_view> kNames = {"tools", "modules", "packages"};

// Lists whose items a first look writes as one running line each, and the fields that it leaves to --area.
const std::set<std::string_view> kRunning = {"gpus", "rdma", "netdevs", "disks"};
const std::set<std::string_view> kDetail = {
    "index", "uuid", "ecc_uncorrected", "fabric_clique", "fabric_cluster", "node_guid", "board_id",
    "lid",   "mac",  "traffic_class",   "is_vf",         "counters"};

struct AreaTitle {
  std::string_view name;
  Text title;
};
constexpr AreaTitle kTitles[] = {
    {"platform", {"Platform", "平台"}},
    {"os", {"Operating system", "操作系统"}},
    {"cpu", {"Processors and memory", "处理器与内存"}},
    {"gpus", {"GPUs", "GPU"}},
    {"gpu_links", {"GPU links", "GPU 互连"}},
    {"driver", {"NVIDIA driver", "NVIDIA 驱动"}},
    {"kernel", {"Kernel", "内核"}},
    {"rdma", {"RDMA devices", "RDMA 设备"}},
    {"rdma_stack", {"RDMA software", "RDMA 软件"}},
    {"netdevs", {"Network devices", "网络设备"}},
    {"pci", {"PCI", "PCI"}},
    {"limits", {"Limits", "限制"}},
    {"cuda", {"CUDA toolkits", "CUDA 工具包"}},
    {"cuda_home", {"CUDA link", "CUDA 链接"}},
    {"python", {"Python environments", "Python 环境"}},
    {"parts", {"Installed parts", "已安装部件"}},
    {"sources", {"Source trees", "源码目录"}},
    {"interfaces", {"Interfaces", "网络接口"}},
    {"tools", {"Tools", "工具"}},
    {"package_database", {"Package database", "软件包数据库"}},
    {"packages", {"Packages", "软件包"}},
    {"apt_sources", {"Package sources", "软件源"}},
    {"environment", {"Environment", "环境变量"}},
    {"nccl_conf", {"NCCL configuration files", "NCCL 配置文件"}},
    {"written_environment", {"Variables written in files", "文件中的环境变量"}},
    {"named_paths", {"Paths named by variables", "变量所指路径"}},
    {"container", {"Container", "容器"}},
    {"disks", {"Disks", "磁盘"}},
    {"user", {"User", "用户"}},
};

std::string pretty(std::string_view name, const std::string& text) {
  if (ends_with(name, "_bytes"))
    if (auto n = parse_double(text)) return human_bytes(*n);
  return text;
}

class Page {
 public:
  Page(const FactsTextOptions& options, const Look& look, bool text_only)
      : options_(options), look_(look), text_only_(text_only) {}

  template <class T>
  void fact(const char* name, const Fact<T>& f) {
    if (names_only_) return note_version(name, f.ok() ? value_text(f.value) : "", f.ok());
    if (f.known == Known::absent && !options_.all) return;
    // A text shows little of a host: what it does not show is not listed one by one.
    if (text_only_ && f.known == Known::unreadable && !options_.all) return;
    if (running_ && kDetail.count(name)) return;
    if (f.ok()) {
      bool show_where = options_.all || !options_.area.empty();
      line(name, pretty(name, value_text(f.value)), show_where ? f.where : "");
      return;
    }
    std::string text =
        fmt::format("({}{}{})", state_word(f.known, look_.lang), f.why.empty() ? "" : ": ", f.why);
    line(name, f.known == Known::absent ? look_.paint(Style::dim, text) : look_.paint(Style::yellow, text),
         options_.all || f.known != Known::absent ? f.where : "");
  }
  template <class T>
  void plain(const char* name, const T& value) {
    std::string text = value_text(value);
    if (names_only_) return note_version(name, text, true);
    if (running_ && kDetail.count(name)) return;
    if (!text.empty()) line(name, text, "");
  }
  template <class Body>
  void group(const char* name, Body body) {
    if (skipped(name)) return;
    if (depth_ > 0 && (is_long(name) || running_)) return;
    open(name, title(name));
    ++depth_;
    body();
    --depth_;
    close();
  }
  template <class T, class Label, class Body>
  void list(const char* name, const std::vector<T>& items, Label label, Body body) {
    if (skipped(name) || (items.empty() && !options_.all)) return;
    if (!options_.all && options_.area != name && kNames.count(name) && (depth_ > 0 || !is_long(name)))
      return names(name, items, label, body);
    if (is_long(name) && !items.empty()) {
      if (depth_ > 0) return line(name, std::to_string(items.size()), "");
      open(name, fmt::format("{}: {}", title(name), items.size()));
      wrote_ = true;
      close();
      return;
    }
    if (running_) return run_on(name, items, label, body);
    open(name, fmt::format("{}: {}", title(name), items.size()));
    wrote_ = true;
    ++depth_;
    if (depth_ == 1 && options_.area.empty() && !options_.all && kRunning.count(name))
      return run_on(name, items, label, body);
    size_t shown = 0;
    for (const auto& item : items) {
      const size_t mark = out_.size();
      out_ += fmt::format("{}{}\n", indent(), look_.paint(Style::bold, std::string(label(item))));
      wrote_ = false;
      ++depth_;
      body(item);
      --depth_;
      if (wrote_)
        ++shown;
      else
        out_.resize(mark);  // nothing is known about it
    }
    wrote_ = shown > 0 || items.empty();
    --depth_;
    close();
  }
  std::string text() const { return out_; }

 private:
  // "git 2.43.0, make, ...": items whose path is not known are not there.
  template <class T, class Label, class Body>
  void names(const char* name, const std::vector<T>& items, Label label, Body body) {
    std::string text;
    for (const auto& item : items) {
      names_only_ = true;
      version_.clear();
      is_there_ = true;
      body(item);
      names_only_ = false;
      if (!is_there_) continue;
      text +=
          (text.empty() ? "" : ", ") + std::string(label(item)) + (version_.empty() ? "" : " " + version_);
    }
    if (text.empty()) return;
    if (depth_ == 0) {
      out_ += look_.paint(Style::bold, title(name)) + "\n  " + wrap(text, look_.width, 2) + "\n";
    } else {
      out_ += fmt::format("{}{} {}\n", indent(), pad(name, size_t(std::max(8, 28 - 2 * depth_))),
                          wrap(text, look_.width, 29));
    }
    wrote_ = true;
  }
  // "0  address 0000:8f:00.0, name NVIDIA B200, ...": an item a line; lists inside it run on in the same
  // line.
  template <class T, class Label, class Body>
  void run_on(const char* name, const std::vector<T>& items, Label label, Body body) {
    const bool is_outer = !running_;
    running_ = true;
    for (const auto& item : items) {
      std::string id = label(item);
      if (is_outer)
        words_.clear();
      else
        words_.push_back(fmt::format("{} {}:", name, id));
      body(item);
      if (!is_outer) continue;
      out_ += fmt::format(
          "  {}  {}\n", look_.paint(Style::bold, id),
          wrap(replace_all(join(words_, ", "), ":, ", ": "), look_.width - int(display_width(id)) - 4, 4));
    }
    if (!is_outer) return;
    running_ = false;
    wrote_ = true;
    --depth_;
    close();
  }
  void note_version(std::string_view name, const std::string& text, bool is_known) {
    if (name == "version") version_ = text;
    if (name == "path" && !is_known) is_there_ = false;
  }
  bool skipped(const char* name) const {
    return depth_ == 0 && !options_.area.empty() && options_.area != name;
  }
  bool is_long(const char* name) const { return !options_.all && options_.area.empty() && kLong.count(name); }
  std::string title(const char* name) const {
    for (const auto& t : kTitles)
      if (t.name == name) return std::string(look_.tr(t.title));
    return name;
  }
  std::string indent() const { return std::string(size_t(depth_) * 2, ' '); }
  void line(const char* name, const std::string& value, const std::string& where) {
    wrote_ = true;
    if (running_) return words_.push_back(fmt::format("{} {}", name, value));
    out_ += fmt::format("{}{} {}", indent(), pad(name, size_t(std::max(8, 28 - 2 * depth_))), value);
    if (!where.empty()) out_ += look_.paint(Style::dim, "  [" + where + "]");
    out_ += '\n';
    wrote_ = true;
  }
  // A heading without content is taken back.
  void open(const char*, const std::string& heading) {
    marks_.emplace_back(out_.size(), wrote_);
    out_ += depth_ == 0 ? look_.paint(Style::bold, heading) + "\n" : fmt::format("{}{}\n", indent(), heading);
    wrote_ = false;
  }
  void close() {
    if (!wrote_) out_.resize(marks_.back().first);
    wrote_ |= marks_.back().second;
    marks_.pop_back();
  }

  const FactsTextOptions& options_;
  const Look& look_;
  bool text_only_ = false;  ///< a paste: what it does not show is left out
  std::string out_;
  std::vector<std::pair<size_t, bool>> marks_;  // where a heading began, and whether its parent had content
  int depth_ = 0;
  bool wrote_ = false, names_only_ = false, is_there_ = true;
  bool running_ = false;
  std::vector<std::string> words_;
  std::string version_;
};

// Every field as path -> text, in order.
class Flat {
 public:
  std::vector<std::pair<std::string, std::string>> rows;
  template <class T>
  void fact(const char* name, const Fact<T>& f) {
    std::string text = f.ok() ? value_text(f.value) : fmt::format("({})", to_string(f.known));
    rows.emplace_back(path_ + name, text);
  }
  template <class T>
  void plain(const char* name, const T& value) {
    rows.emplace_back(path_ + name, value_text(value));
  }
  template <class Body>
  void group(const char* name, Body body) {
    down(name, body);
  }
  template <class T, class Label, class Body>
  void list(const char* name, const std::vector<T>& items, Label label, Body body) {
    for (const auto& item : items) down(fmt::format("{}/{}", name, label(item)), [&] { body(item); });
  }

 private:
  template <class Body>
  void down(const std::string& name, Body body) {
    std::string up = path_;
    path_ += name + "/";
    body();
    path_ = up;
  }
  std::string path_;
};

bool is_volatile(std::string_view path) {
  for (std::string_view end :
       {"/boot_id", "/hostname", "/uuid", "/node_guid", "/mac", "/ips", "/gid", "/lid",
        "/memory_available_bytes", "/shm_free_bytes", "/free_bytes", "/cmdline", "/fabric_cluster"})
    if (ends_with(path, end)) return true;
  return contains(path, "/counters/");
}

}  // namespace

std::string facts_text(const Facts& facts, const FactsTextOptions& options, const Look& look) {
  Page page(options, look, facts.host_kind == "paste");
  fields(page, facts);
  return page.text();
}

std::vector<FactDifference> compare_facts(const Facts& a, const Facts& b, bool volatile_too) {
  Flat left, right;
  fields(left, a);
  fields(right, b);
  std::map<std::string, std::string> other(right.rows.begin(), right.rows.end());
  std::vector<FactDifference> out;
  std::set<std::string> seen;
  for (const auto& [path, value] : left.rows) {
    seen.insert(path);
    auto it = other.find(path);
    std::string theirs = it == other.end() ? "(not there)" : it->second;
    if (theirs != value && (volatile_too || !is_volatile(path))) out.push_back({path, value, theirs});
  }
  for (const auto& [path, value] : right.rows)
    if (!seen.count(path) && (volatile_too || !is_volatile(path)))
      out.push_back({path, "(not there)", value});
  return out;
}

}  // namespace ep
