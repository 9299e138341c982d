// build: static
// The auxiliary vector as a static program sees it.
#include "auxv.h"
