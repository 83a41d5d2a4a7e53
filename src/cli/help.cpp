// `help [COMMAND]`, `help --man COMMAND`: manual pages are docs/commands/*.md, compiled in; options come from
// the table.
#include <fmt/core.h>

#include "base/embedded.h"
#include "cli/parse.h"
#include "cli/rows.h"

namespace ep {
namespace {

const CommandRow* row_named(const std::string& name) {
  for (const auto& row : commands())
    if (name == row.name) return &row;
  return nullptr;
}

std::optional<std::string_view> page(const std::string& name, Lang lang) {
  std::string file = replace_all(name, " ", "-") + ".md";
  if (lang == Lang::zh)
    if (auto p = embedded("docs/zh/commands/" + file)) return p;
  return embedded("docs/commands/" + file);
}

/// Roff of one line of running text: backslashes, leading dots, `code` and **bold**.
std::string roff_line(std::string_view line) {
  std::string out;
  bool code = false, bold = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '`') {
      out += (code = !code) ? "\\fB" : "\\fR";
    } else if (!code && line[i] == '*' && i + 1 < line.size() && line[i + 1] == '*') {
      out += (bold = !bold) ? "\\fB" : "\\fR";
      ++i;
    } else if (line[i] == '\\') {
      out += "\\e";
    } else if (line[i] == '-') {
      out += "\\-";
    } else {
      out += line[i];
    }
  }
  if (!out.empty() && (out[0] == '.' || out[0] == '\'')) out.insert(0, "\\&");
  return out;
}

std::string to_roff(const CommandRow& row, std::string_view markdown, Lang lang) {
  std::string name = replace_all(row.name, " ", "-");
  std::string out =
      fmt::format(".TH EPREADY-{} 1 \"\" epready \"epready manual\"\n.SH NAME\nepready-{} \\- {}\n", name,
                  name, roff_line(row.summary.in(lang)));
  bool code = false;
  for (auto line : lines(markdown)) {
    if (starts_with(line, "```")) {
      out += (code = !code) ? ".PP\n.RS 4\n.nf\n" : ".fi\n.RE\n";
    } else if (code) {
      out += "\\&" + replace_all(replace_all(std::string(line), "\\", "\\e"), "-", "\\-") + "\n";
    } else if (starts_with(line, "# ")) {
      continue;
    } else if (starts_with(line, "## ")) {
      out += ".SH " + roff_line(line.substr(3)) + "\n";
    } else if (starts_with(line, "### ")) {
      out += ".SS " + roff_line(line.substr(4)) + "\n";
    } else if (starts_with(line, "- ")) {
      out += ".IP \\(bu 2\n" + roff_line(line.substr(2)) + "\n";
    } else if (trim(line).empty()) {
      out += ".PP\n";
    } else {
      out += roff_line(line) + "\n";
    }
  }
  out += ".SH OPTIONS\n.nf\n";
  const std::string options = options_text(row, lang);  // outlives the views into it
  for (auto line : lines(options)) out += roff_line(line) + "\n";
  return out + ".fi\n";
}

class Help : public Command {
 public:
  std::vector<Option> options() override {
    return {{"command", {"Command to explain", "要说明的命令"}, &words_, {}, "COMMAND", false},
            {"--man",
             {"Print the page as a manual page (roff)", "以 man 手册（roff）格式输出"},
             &man_,
             {},
             "",
             false}};
  }
  int run(Context& c) override {
    if (words_.empty()) return c.out(overview(c.lang)), 0;
    std::string name = join(words_, " ");
    const CommandRow* row = row_named(name);
    if (!row) {
      std::vector<std::string> names;
      for (const auto& r : commands()) names.emplace_back(r.name);
      auto near = closest(name, names);
      return c.report(fail(ErrorKind::usage, fmt::format("no command \"{}\"", name), {},
                           near ? fmt::format("did you mean \"{}\"?", *near) : "", "epready help")
                          .value());
    }
    auto text = page(name, c.lang);
    if (!text) return c.report(fail(ErrorKind::internal, "no manual page", name).value());
    if (man_) return c.out(to_roff(*row, *text, c.lang)), 0;
    c.out(*text);
    c.out(fmt::format("\n## {}\n\n{}", c.tr({"Options", "选项"}), options_text(*row, c.lang)));
    return 0;
  }

 private:
  std::vector<std::string> words_;
  bool man_ = false;
};

class Completion : public Command {
 public:
  std::vector<Option> options() override {
    return {{"shell", {"Which shell", "哪种 shell"}, &shell_, {"bash", "zsh", "fish"}, "SHELL", true}};
  }
  int run(Context& c) override {
    if (shell_ == "bash")
      c.out(
          "_epready() {\n  local IFS=$'\\n'\n  COMPREPLY=($(\"${COMP_WORDS[0]}\" __complete "
          "\"${COMP_WORDS[@]:1:COMP_CWORD}\" "
          "2>/dev/null))\n}\ncomplete -o default -F _epready epready\n");
    else if (shell_ == "zsh")
      c.out(
          "#compdef epready\n_epready() {\n  local -a found\n  found=(${(f)\"$(${words[1]} __complete "
          "${words[2,CURRENT]} "
          "2>/dev/null)\"})\n  compadd -a found || _files\n}\ncompdef _epready epready\n");
    else
      c.out("complete -c epready -a '(epready __complete (commandline -opc)[2..-1] (commandline -ct))'\n");
    return 0;
  }

 private:
  std::string shell_;
};

}  // namespace

std::unique_ptr<Command> make_help() {
  return std::make_unique<Help>();
}
std::unique_ptr<Command> make_completion() {
  return std::make_unique<Completion>();
}

}  // namespace ep
