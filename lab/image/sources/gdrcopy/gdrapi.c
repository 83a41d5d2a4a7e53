#include "gdrapi.h"
int gdr_stand_in(void) { return 1; }
