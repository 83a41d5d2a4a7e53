// A diagnosis, a problem and the list of problems as text for people, JSON for programs and Markdown for bug
// reports; and findings in the formats of code hosts, CI and monitoring. Decides nothing.
#pragma once
#include <string>

#include "doctor/judge.h"
#include "doctor/problem.h"
#include "report/look.h"

namespace ep {

std::string diagnosis_text(const Diagnosis& d, const Look& look);
/// {schema: epready-doctor-1, tool, findings: [{kind, severity, confidence, title, cause, fix, evidence,
/// ruled_out, next}], undecided, healthy, start, collect, notes, errors, read}.
std::string diagnosis_json(const Diagnosis& d);
std::string diagnosis_markdown(const Diagnosis& d, const Look& look);
/// SARIF 2.1.0: one rule a kind, one result a finding with its lines.
std::string diagnosis_sarif(const Diagnosis& d);
/// JUnit XML: one test case a finding; silence is one passed case.
std::string diagnosis_junit(const Diagnosis& d);
/// CTRF 0.0.0 JSON (ctrf.io): the same in that shape.
std::string diagnosis_ctrf(const Diagnosis& d);
/// One line for Nagios and its heirs: "EPREADY CRITICAL - kind: title | findings=1". The plugin's exit code:
/// 0 1 2 3.
std::string diagnosis_nagios(const Diagnosis& d);
int nagios_exit_code(const Diagnosis& d);

std::string problem_text(const Problem& p, const Look& look);
std::string problem_json(const Problem& p);
std::string problems_text(const Catalogue& c, const Look& look);
std::string problems_json(const Catalogue& c);

}  // namespace ep
