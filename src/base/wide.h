/* For a file whose loops over arrays are to become vector instructions. Included before anything
 * else: gcc never inlines a function into one that is compiled with other options, so what headers
 * define must come after.
 *
 * WIDE, before a function, compiles it once more for wider vectors where the compiler and the
 * system choose among the versions by themselves; bits are equal, since no version contracts a
 * product and a sum. Sanitizers cannot instrument that choice, so under them there is one version.
 */
#ifndef BASE_WIDE_H
#define BASE_WIDE_H

#include <stdint.h> /* says whose C library this is */

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-trapping-math") /* nobody reads the exception flags */
#endif

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__) &&       \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define WIDE
#endif

#endif
