// SLIMGRAD_CHECK guards the library against its own mistakes: a broken precondition stops the
// process with the place and the condition. Whatever outside data can cause (bytes, files, spec
// strings, peers) is a Status instead; see core/status.h.
#pragma once

#include <cstdio>
#include <cstdlib>

#define SLIMGRAD_CHECK(condition)                                                        \
  do {                                                                                   \
    if (!(condition)) {                                                                  \
      std::fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                      \
    }                                                                                    \
  } while (false)
