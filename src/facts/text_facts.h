// Joins the pieces of one pasted host into Facts: every reader of facts/text_*.h, one after the other, and
// what they say against each other.
#pragma once
#include <functional>
#include <string>

#include "facts/facts.h"
#include "host/paste.h"

namespace ep {

/// Adds what the pieces show. Facts that are known already stay; contradictions become findings.
void add_pasted_facts(const PastedHost& pasted, Facts& facts);

/// `read_facts` for a paste: only what was pasted is known.
Facts facts_of_paste(const PastedHost& pasted, const std::string& shown_name);

/// The link matrices that the probes of a live host or a snapshot show, as a second witness beside sysfs.
void add_probed_matrices(const std::function<const ProbeResult&(const std::string&)>& probe, Facts& facts);

}  // namespace ep
