#include "plan/plan_json.h"

namespace ep {
namespace {

Plan sample() {
  Plan p;
  p.host_name = "b7";
  p.lane = "v1";
  p.stack = "v1-gcp-b200";
  p.prefix = "/opt/epready";
  p.facts_used = {{"driver.version", "580.95.05"}};
  Step s;
  s.id = "everything";
  s.mark = Mark::change;
  s.risk = Risk::kernel_options;
  s.needs_steps = {"a", "b"};
  s.before = {{"package_installed", {"cuda-toolkit-12-9"}}};
  s.actions = {
      RunArgv{{"make", "-j2"}, "src", {{"CUDA_HOME", "/usr/local/cuda"}}, 10},
      WriteFile{"/etc/x", "line \"q\"\n\xc3\xa9", 0600},
      RemoveFile{"/x"},
      MakeLink{"/a", "/b"},
      MakeDir{"/d", 0700},
      InstallPackages{{"cmake"}},
      AddAptSource{"cuda", "https://h/", "./", "", "https://h/key", "", "EB69"},
      Fetch{"https://h/f", "00", "f"},
      Unpack{"f", "d"},
      GitCheckout{"https://h/g", "0123", "g"},
      ApplyPatch{"p", "g"},
      CMakeBuild{"s", "b", "i", {"-DA=ON"}, {{"A", "1"}}, 5},
      PythonVenv{"venv", "python3"},
      PipInstall{"venv", {"torch==2.9.1"}, {"nccl>=2"}, "https://h", {"-v"}, true, true, {{"K", "V"}}, 7},
      MergeModuleOptions{"nvidia", {{"NVreg_RegistryDwords", "PeerMappingOverride=1"}}, "/etc/m"},
      RefreshInitramfs{},
      SetLimits{{{"memlock", "unlimited"}}},
      Reboot{},
      RunSelf{{"env"}, 3}};
  s.undo = {RemoveFile{"/etc/x"}};
  p.steps = {s};
  p.skipped = {{"gdrcopy", "GDRCopy", "not needed", "Phase 6"}};
  Finding f;
  f.code = "note";
  f.severity = Severity::warn;
  f.evidence = {{"params", 3, "x"}};
  p.notes = {f};
  return p;
}

TEST(PlanJson, EveryActionSurvivesARoundTrip) {
  const Plan p = sample();
  ASSERT_EQ(p.steps[0].actions.size(), std::variant_size_v<Action>);  // a new action must join this list
  const std::string text = plan_to_json(p);
  auto back = plan_from_json(text);
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(plan_to_json(*back), text);
  EXPECT_EQ(std::get<PipInstall>(back->steps[0].actions[13]).overrides.at(0), "nccl>=2");
  EXPECT_EQ(std::get<WriteFile>(back->steps[0].actions[1]).mode, 0600u);
  EXPECT_EQ(back->notes.at(0).evidence.at(0).line, 3);
}

TEST(PlanJson, RefusesWhatItDoesNotUnderstand) {
  const std::string good = plan_to_json(sample());
  auto with = [&](const std::string& from, const std::string& to) {
    std::string t = good;
    const size_t at = t.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return plan_from_json(t.replace(at, from.size(), to));
  };
  auto r = with("\"write-file\"", "\"shell\"");
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().kind, ErrorKind::malformed);
  EXPECT_EQ(r.error().where, "steps[0].actions[1].do");
  r = with("\"epready-plan-1\"", "\"epready-plan-9\"");
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().where, "schema");
  EXPECT_EQ(r.error().kind, ErrorKind::usage);  // exit code 2, as documented
  r = with("\"needs_root\"", "\"needs_r00t\"");
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().where, "steps[0].needs_root");
  r = with("\"limit_s\": 10", "\"limit_s\": \"ten\"");
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().where, "steps[0].actions[0].limit_s");
  r = with("\"kernel_options\"", "\"none\"");
  ASSERT_FALSE(r);
  for (std::string_view bad : {"", "{", "[]", "null", "{\"schema\": 1}"})
    EXPECT_FALSE(plan_from_json(bad)) << bad;
}

TEST(PlanJson, EveryTruncationIsAnErrorAndNeverACrash) {
  const std::string good = plan_to_json(sample());
  for (size_t n = 0; n + 2 < good.size(); n += 7) EXPECT_FALSE(plan_from_json(good.substr(0, n))) << n;
}

}  // namespace
}  // namespace ep
