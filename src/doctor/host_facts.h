// The typed facts of a host in the names that problems speak (data/VOCABULARY.md, "problem"). Pure.
#pragma once
#include "doctor/observed.h"
#include "facts/facts.h"

namespace ep {

void observe_host(const Facts& facts, Observed& observed);

}  // namespace ep
