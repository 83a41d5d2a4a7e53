#include "cli/parse.h"

#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>

namespace ep {
namespace {

#ifndef EP_VERSION
#define EP_VERSION "0.0.0"
#endif

struct GroupName {
  Group group;
  Text title;
};
constexpr GroupName kGroups[] = {
    {Group::main, {"The whole chain", "完整流程"}},
    {Group::know, {"Know this host", "了解本机"}},
    {Group::change, {"Change it", "改变本机"}},
    {Group::prove, {"Prove it", "验证与测量"}},
    {Group::help, {"Help", "帮助"}},
};

Lang lang_of_locale() {
  for (const char* name : {"LC_ALL", "LC_MESSAGES", "LANG"}) {
    const char* v = std::getenv(name);
    // Chinese is written in UTF-8: a terminal of another encoding (zh_CN.GB18030) would show rubbish.
    const std::string_view codeset =
        v && contains(v, ".") ? std::string_view(v).substr(std::string_view(v).find('.') + 1) : "";
    const bool utf8 = codeset.empty() || icontains(codeset, "utf-8") || icontains(codeset, "utf8");
    if (v && *v) return starts_with(v, "zh") && utf8 ? Lang::zh : Lang::en;
  }
  return Lang::en;
}

/// --lang has to be known before help texts are made: look for it ahead of the real parse.
Lang early_lang(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    std::string_view a = argv[i];
    if (a == "--lang" && i + 1 < argc) return std::string_view(argv[i + 1]) == "zh" ? Lang::zh : Lang::en;
    if (starts_with(a, "--lang=")) return a.substr(7) == "zh" ? Lang::zh : Lang::en;
  }
  return lang_of_locale();
}

Context base_context(int argc, const char* const* argv, Lang lang) {
  Context c;
  c.lang = lang;
  c.argv.assign(argv, argv + argc);
  c.terminal = look_at_terminal(STDOUT_FILENO);
  return c;
}

/// Options that every command has, where its row allows them.
void common_options(const CommandRow& row, Context& c, std::string& lang_word, std::vector<Option>& options) {
  if (row.takes_from)
    options.push_back({"--from",
                       {"Read this instead of the live host: snapshot folder or archive, paste (file, "
                        "folder, -), sample/NAME",
                        "不读本机，而读：快照目录或归档、粘贴文本（文件、目录、-）、sample/NAME"},
                       &c.from,
                       {},
                       "PATH",
                       false});
  if (row.has_json)
    options.push_back({"--json",
                       {"Machine-readable result on stdout", "在标准输出给出机器可读的结果"},
                       &c.json,
                       {},
                       "",
                       false});
  options.push_back(
      {"--lang", {"Language of human text", "文本语言"}, &lang_word, {"en", "zh"}, "LANG", false});
}

void bind(CLI::App& app, const Option& o, Lang lang) {
  std::string help(o.help.in(lang));
  CLI::Option* made = std::visit(
      [&](auto* into) -> CLI::Option* {
        using T = std::remove_pointer_t<decltype(into)>;
        if constexpr (std::is_same_v<T, bool>)
          return app.add_flag(o.names, *into, help);
        else
          return app.add_option(o.names, *into, help);
      },
      o.into);
  if (!o.choices.empty()) made->check(CLI::IsMember(o.choices));
  if (!o.value_name.empty()) made->type_name(o.value_name);
  if (o.required) made->required();
}

std::vector<std::string> option_words(const std::vector<Option>& options) {
  std::vector<std::string> words;
  for (const auto& o : options)
    for (auto n : split(o.names, ','))
      if (starts_with(trim(n), "-")) words.emplace_back(trim(n));
  words.push_back("--help");
  return words;
}

const CommandRow* find_row(const std::vector<std::string>& words, size_t& used) {
  // Two-word names first, so that "env lint" wins over "env".
  if (words.size() >= 2)
    for (const auto& row : commands())
      if (words[0] + " " + words[1] == row.name) return used = 2, &row;
  if (!words.empty())
    for (const auto& row : commands())
      if (words[0] == row.name) return used = 1, &row;
  return nullptr;
}

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const auto& row : commands()) names.emplace_back(row.name);
  return names;
}

std::string unknown_command(const std::string& word, Lang lang) {
  auto near = closest(word, command_names());
  std::string text =
      fmt::format("epready: {} \"{}\"", lang == Lang::zh ? "没有这个命令：" : "no command", word);
  if (near)
    text +=
        fmt::format(fmt::runtime(lang == Lang::zh ? "；是否想用 \"{}\"？" : "; did you mean \"{}\"?"), *near);
  text += fmt::format("\n{}: epready {}\n", lang == Lang::zh ? "下一步" : "next",
                      near ? *near + " --help" : "help");
  return text;
}

/// An option that the command does not have explains itself better than CLI11's list of what was left over.
std::string usage_error(const CommandRow& row, std::string message, const std::vector<std::string>& args,
                        const std::vector<std::string>& words, Lang lang) {
  bool zh = lang == Lang::zh;
  for (const auto& a : args) {
    std::string word = a.substr(0, a.find('='));
    if (!starts_with(word, "-") || word == "-" || std::find(words.begin(), words.end(), word) != words.end())
      continue;
    if (parse_double(word)) continue;  // a negative number is a value
    message = fmt::format("{} {}", zh ? "没有这个选项：" : "no option", word);
    if (auto near = closest(word, words))
      message += fmt::format(fmt::runtime(zh ? "；是否想用 {}？" : "; did you mean {}?"), *near);
    break;
  }
  return fmt::format("epready {}: {}\n{}: epready {} --help\n", row.name, message, zh ? "下一步" : "next",
                     row.name);
}

std::string option_line(const Option& o, Lang lang) {
  std::string head;
  for (auto n : split(o.names, ',')) head += (head.empty() ? "" : ", ") + std::string(trim(n));
  if (!o.value_name.empty() && starts_with(o.names, "-")) head += " " + o.value_name;
  std::string help(o.help.in(lang));
  if (!o.choices.empty()) help += " (" + join(o.choices, " | ") + ")";
  if (display_width(head) > 26) return "  " + head + "\n" + std::string(30, ' ') + help + "\n";
  return "  " + pad(head, 28) + help + "\n";
}

std::string command_help(const CommandRow& row, const std::vector<Option>& options, Lang lang) {
  std::string usage = fmt::format("epready {}", row.name), positionals, list;
  for (const auto& o : options) {
    if (starts_with(o.names, "-")) continue;
    bool many = std::holds_alternative<std::vector<std::string>*>(o.into);
    std::string shown = (o.value_name.empty() ? o.names : o.value_name) + std::string(many ? "..." : "");
    positionals += o.required ? " " + shown : " [" + shown + "]";
  }
  for (const auto& o : options) list += option_line(o, lang);
  return fmt::format("{}\n\n{}: {} [{}]{}\n\n{}\n{}: epready help {}\n", row.summary.in(lang),
                     lang == Lang::zh ? "用法" : "Usage", usage, lang == Lang::zh ? "选项" : "options",
                     positionals, list, lang == Lang::zh ? "手册" : "manual", row.name);
}

}  // namespace

std::string overview(Lang lang) {
  std::string out =
      fmt::format("epready {} - {}\n\n{}: epready COMMAND [options]\n", EP_VERSION,
                  lang == Lang::zh
                      ? "把 GPU 主机从裸系统带到经过验证的专家并行通信栈"
                      : "takes a GPU host from bare system to a verified expert-parallel communication stack",
                  lang == Lang::zh ? "用法" : "Usage");
  for (const auto& g : kGroups) {
    std::string block;
    for (const auto& row : commands())
      if (row.group == g.group) block += fmt::format("  {}{}\n", pad(row.name, 14), row.summary.in(lang));
    if (!block.empty()) out += fmt::format("\n{}\n{}", g.title.in(lang), block);
  }
  out += lang == Lang::zh
             ? "\n下一步: epready up      （先看看：epready facts；没有 GPU 也可试：epready plan --from "
               "sample/gcp-a4-fresh）\n"
             : "\nnext: epready up      (look first: epready facts; try without a GPU: epready plan --from "
               "sample/gcp-a4-fresh)\n";
  return out;
}

std::string options_text(const CommandRow& row, Lang lang) {
  auto command = row.make();
  auto options = command->options();
  Context scratch;
  std::string lang_word, out;
  common_options(row, scratch, lang_word, options);
  for (const auto& o : options) out += option_line(o, lang);
  return out;
}

Parsed parse(int argc, const char* const* argv) {
  Parsed p;
  Lang lang = early_lang(argc, argv);
  p.context = base_context(argc, argv, lang);
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  // Global words may stand before the command: epready --lang zh up
  std::vector<std::string> global;
  while (!words.empty() && starts_with(words[0], "--lang")) {
    size_t n = words[0] == "--lang" && words.size() > 1 ? 2 : 1;
    global.insert(global.end(), words.begin(), words.begin() + long(n));
    words.erase(words.begin(), words.begin() + long(n));
  }
  if (words.empty() || words[0] == "--help" || words[0] == "-h") return p.text = overview(lang), std::move(p);
  if (words[0] == "--version" || words[0] == "version")
    return p.text = fmt::format("epready {}\n", EP_VERSION), std::move(p);
  if (words[0] == "__complete") {
    for (auto& w : complete({words.begin() + 1, words.end()})) p.text += w + "\n";
    return p;
  }
  size_t used = 0;
  const CommandRow* row = find_row(words, used);
  if (!row) {
    p.text = unknown_command(words[0], lang);
    p.exit_code = 2;
    return p;
  }
  std::vector<std::string> args(words.begin() + long(used), words.end());
  args.insert(args.end(), global.begin(), global.end());

  p.command = row->make();
  std::string lang_word;
  auto options = p.command->options();
  common_options(*row, p.context, lang_word, options);
  CLI::App app;
  app.set_help_flag();  // ours: same words everywhere
  bool help = false;
  app.add_flag("-h,--help", help);
  for (const auto& o : options) bind(app, o, lang);
  if (std::find(args.begin(), args.end(), "--help") != args.end() ||
      std::find(args.begin(), args.end(), "-h") != args.end()) {
    p.text = command_help(*row, options, lang);
    p.command.reset();
    return p;
  }
  try {
    std::vector<std::string> reversed(args.rbegin(), args.rend());
    app.parse(reversed);
  } catch (const CLI::Error& e) {
    p.text = usage_error(*row, e.what(), args, option_words(options), lang);
    p.exit_code = 2;
    p.command.reset();
    return p;
  }
  p.row = row;
  return p;
}

std::vector<std::string> complete(const std::vector<std::string>& words) {
  std::vector<std::string> out;
  std::string last = words.empty() ? "" : words.back();
  std::vector<std::string> before(words.begin(), words.empty() ? words.end() : words.end() - 1);
  size_t used = 0;
  const CommandRow* row = find_row(before, used);
  auto offer = [&](std::string_view w) {
    if (starts_with(w, last)) out.emplace_back(w);
  };
  if (!row) {
    for (const auto& r : commands())
      offer(std::string_view(r.name).substr(0, std::string_view(r.name).find(' ')));
  } else {
    for (const auto& r : commands())  // second words: "env l" -> lint
      if (used == 1 && before.size() == 1 && starts_with(r.name, before[0] + " "))
        offer(r.name + before[0].size() + 1);
    auto command = row->make();
    auto options = command->options();
    Context scratch;
    std::string lang_word;
    common_options(*row, scratch, lang_word, options);
    for (const auto& o : options) {  // values of the option before the cursor
      auto names = split(o.names, ',');
      bool here = !before.empty() &&
                  std::any_of(names.begin(), names.end(), [&](auto n) { return trim(n) == before.back(); });
      if (here) {
        for (const auto& c : o.choices) offer(c);
        if (!o.choices.empty()) return out;
      }
    }
    for (const auto& w : option_words(options)) offer(w);
    if (std::string_view(row->name) == "help")
      for (const auto& r : commands()) offer(r.name);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace ep
