#include "base/options.h"
