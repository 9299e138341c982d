// build: dynamic -DDYNAMIC
// The auxiliary vector as a dynamically linked program sees it.
#include "auxv.h"
