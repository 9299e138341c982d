// build: dynamic -static-pie
// The auxiliary vector as a static position-independent program sees it.
#include "auxv.h"
