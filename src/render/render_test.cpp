#include "render/render.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/text.h"
#include "plan/fact_scope.h"
#include "plan/planner.h"

namespace ep {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& p) {
  std::ifstream in(p, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
int run(const std::string& command) {
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

struct Scratch {
  fs::path dir = fs::path(testing::TempDir()) / ("ep_render_" + std::to_string(getpid()));
  Scratch() { fs::create_directories(dir); }
  ~Scratch() { fs::remove_all(dir); }
};

Plan plan_in(const std::string& prefix) {
  Plan p;
  p.host_name = "h";
  p.lane = "v1";
  p.stack = "s";
  p.prefix = prefix;
  Step s;
  s.id = "files";
  s.title = "it's $(touch /tmp/never) \"quoted\" `x`";
  s.why = "why\nsecond line";
  s.actions = {MakeDir{prefix + "/d", 0750},
               WriteFile{prefix + "/d/a b", "$HOME 'x'\nEPREADY_END\nlast", 0600},
               MakeLink{prefix + "/link", "d/a b"},
               RunArgv{{"sh", "-c", "printf %s \"$1\" > out", "x", "a'b $c"}, "d", {{"K", "v w"}}, 10}};
  p.steps = {s};
  return p;
}

TEST(Render, ScriptDoesWhatThePlanSaysAndQuotesEverything) {
  Scratch scratch;
  const std::string prefix = scratch.dir / "p r";
  const Plan plan = plan_in(prefix);
  const fs::path script = scratch.dir / "run.sh";
  std::ofstream(script) << render_script({&plan, {}, "", Lang::en});
  ASSERT_EQ(run("sh " + shell_quote(script.string()) + " 2>/dev/null"), 0);
  EXPECT_EQ(read(fs::path(prefix) / "d" / "a b"), "$HOME 'x'\nEPREADY_END\nlast\n");
  EXPECT_EQ(read(fs::path(prefix) / "link"), "$HOME 'x'\nEPREADY_END\nlast\n");
  EXPECT_EQ(read(fs::path(prefix) / "d" / "out"), "a'b $c");
  fs::remove(fs::path(prefix) / "d" / "out");
  ASSERT_EQ(run("sh " + shell_quote(script.string()) + " 2>/dev/null"), 0);  // done once: not again
  EXPECT_FALSE(fs::exists(fs::path(prefix) / "d" / "out"));
}

TEST(Render, AFailingStepStopsTheScriptAndIsTriedAgain) {
  Scratch scratch;
  Plan plan = plan_in(scratch.dir / "p");
  plan.steps[0].actions.push_back(RunArgv{{"false"}, "", {}, 10});
  const fs::path script = scratch.dir / "run.sh";
  std::ofstream(script) << render_script({&plan, {}, "", Lang::en});
  EXPECT_EQ(run("sh " + shell_quote(script.string()) + " 2>/dev/null"), 1);
  EXPECT_FALSE(fs::exists(scratch.dir / "p" / "script-state" / "files"));
}

TEST(Render, AnUnpinnedKeyOrDownloadIsRefused) {
  Scratch scratch;
  for (const Action& a :
       {Action{AddAptSource{"x", "https://127.0.0.1:1/", "./", "", "https://127.0.0.1:1/key", "", ""}},
        Action{Fetch{"https://127.0.0.1:1/f", "", (scratch.dir / "f").string()}}}) {
    Plan plan = plan_in(scratch.dir / "p");
    plan.steps[0].actions = {a};
    const fs::path script = scratch.dir / "run.sh";
    std::ofstream(script) << render_script({&plan, {}, "", Lang::en});
    EXPECT_EQ(run("sh " + shell_quote(script.string()) + " 2>" + shell_quote((scratch.dir / "err").string())),
              1);
    EXPECT_NE(read(scratch.dir / "err").find("no "), std::string::npos);
  }
}

TEST(Render, AnUnpinnedKeyIsRefusedBeforeAnythingIsWritten) {
  Plan plan = plan_in("/opt/x");
  plan.steps[0].component = "doca-ofed";
  plan.steps[0].actions = {
      AddAptSource{"x", "https://127.0.0.1:1/", "./", "", "https://127.0.0.1:1/key", "", ""}};
  for (const auto& form : render_forms()) {
    const auto text = render(form, {&plan, {}, "ubuntu:24.04", Lang::en});
    ASSERT_FALSE(text) << form;
    EXPECT_EQ(text.error().kind, ErrorKind::unsupported);
    EXPECT_EQ(text.error().next, "epready plan --as " + form + " --with doca-ofed-key=FINGERPRINT");
  }
  std::get<AddAptSource>(plan.steps[0].actions[0]).key_fingerprint = std::string(40, 'A');
  EXPECT_TRUE(render("script", {&plan, {}, "", Lang::en}));
}

/// A keyring file may hold keys that nobody pinned: only the pinned one is trusted.
TEST(Render, AScriptTrustsThePinnedKeyAlone) {
  if (run("command -v gpg >/dev/null") != 0) GTEST_SKIP() << "gpg is not installed";
  Scratch scratch;
  const std::string dir = scratch.dir.string();
  ASSERT_EQ(run("mkdir -m 700 " + shell_quote(dir + "/home") + " && GNUPGHOME=" + shell_quote(dir + "/home") +
                " sh -ec 'for n in ours theirs; do gpg --batch --quiet --passphrase \"\" "
                "--quick-generate-key $n ed25519 "
                "sign never; done 2>/dev/null; gpg --export > " +
                dir + "/both.gpg; gpg --armor --export > " + dir +
                "/both.asc; gpg --with-colons -k ours | sed -n \"s/^fpr:*\\([0-9A-F]*\\):/\\1/p\" > " + dir +
                "/fpr'"),
            0);
  const std::string fingerprint(trim(read(dir + "/fpr")));
  ASSERT_EQ(fingerprint.size(), 40u);
  for (const char* file : {"/both.gpg", "/both.asc"}) {
    const std::string ring = dir + "/ring" + file + ".gpg";
    std::ofstream(dir + "/key.sh") << shell_prelude() << "ep_key file://" << dir << file << " " << fingerprint
                                   << " " << ring << "\n";
    ASSERT_EQ(run("sh -eu " + shell_quote(dir + "/key.sh")), 0) << file;
    ASSERT_EQ(run("gpg --show-keys --with-colons " + shell_quote(ring) + " 2>/dev/null | grep '^uid' > " +
                  shell_quote(dir + "/uids")),
              0);
    EXPECT_NE(read(dir + "/uids").find("ours"), std::string::npos);
    EXPECT_EQ(read(dir + "/uids").find("theirs"), std::string::npos);
  }
}

/// The stack of every lane in every form: shell parses, and each step is named in it.
TEST(Render, EveryFormOfEveryStackIsWhole) {
  Scratch scratch;
  auto recipe = load_recipe("", condition_names());
  ASSERT_TRUE(recipe);
  for (const auto& stack : recipe->stacks) {
    if (stack.lane == "local") continue;
    Facts f;
    f.host_name = f.host_kind = "snapshot";
    PlanOptions o;
    o.stack = stack.id;
    o.consumer = stack.consumers.front();
    o.with = {"gpu=build-only", "arch=9.0;10.0"};
    auto planned = make_plan(f, *recipe, o);
    ASSERT_TRUE(planned) << stack.id << planned.error().text();
    for (const auto& form : render_forms()) {
      SCOPED_TRACE(stack.id + " as " + form);
      auto text =
          render(form, {&planned->plan, recipe->platform("gke-cos-pod")->pod, "ubuntu:24.04", Lang::en});
      ASSERT_TRUE(text);
      for (const auto& s : planned->plan.steps) EXPECT_NE(text->find(s.id), std::string::npos) << s.id;
      if (form != "script") continue;
      const fs::path script = scratch.dir / "x.sh";
      std::ofstream(script) << *text;
      EXPECT_EQ(run("sh -n " + shell_quote(script.string())), 0);
    }
  }
  EXPECT_FALSE(render("dockerfil", {}));
  EXPECT_NE(render("dockerfil", {}).error().text().find("dockerfile"), std::string::npos);
}

TEST(Render, YamlScalarsAreQuoted) {
  EXPECT_EQ(yaml_quote("a\"b\\c\nd\te"), "\"a\\\"b\\\\c\\nd\\x09e\"");
  EXPECT_EQ(yaml_block("a\n\n b\n", 2), "|\n  a\n\n   b\n");
}

}  // namespace
}  // namespace ep
