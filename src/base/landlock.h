/* Landlock's interface, as the kernel defines it up to ABI 7. The installed headers of the systems
 * this is built on stop at an earlier one; the numbers are the kernel's and do not change.
 * Private to sandbox.c. */
#ifndef BASE_LANDLOCK_H
#define BASE_LANDLOCK_H

#include <stdint.h>

enum { LANDLOCK_SYS_CREATE = 444, LANDLOCK_SYS_ADD_RULE = 445, LANDLOCK_SYS_RESTRICT = 446 };
enum { LANDLOCK_FLAG_VERSION = 1, LANDLOCK_RULE_BENEATH = 1 };

#define LL_EXECUTE    (UINT64_C(1) << 0)
#define LL_WRITE_FILE (UINT64_C(1) << 1)
#define LL_READ_FILE  (UINT64_C(1) << 2)
#define LL_READ_DIR   (UINT64_C(1) << 3)
#define LL_ABI_1_ALL  ((UINT64_C(1) << 13) - 1) /* those, and removing and making of each kind */
#define LL_REFER      (UINT64_C(1) << 13)       /* ABI 2: rename and link between folders */
#define LL_TRUNCATE   (UINT64_C(1) << 14)       /* ABI 3 */
#define LL_IOCTL_DEV  (UINT64_C(1) << 15)       /* ABI 5 */

#define LL_NET_BIND_TCP    (UINT64_C(1) << 0) /* ABI 4 */
#define LL_NET_CONNECT_TCP (UINT64_C(1) << 1)

#define LL_SCOPE_ABSTRACT_UNIX (UINT64_C(1) << 0) /* ABI 6 */
#define LL_SCOPE_SIGNAL        (UINT64_C(1) << 1)

/* Rights that a rule on something that is not a folder may carry. */
#define LL_FILE_RIGHTS (LL_EXECUTE | LL_WRITE_FILE | LL_READ_FILE | LL_TRUNCATE | LL_IOCTL_DEV)

struct ll_ruleset { /* a kernel that knows fewer fields takes a longer struct of zeros */
    uint64_t handled_fs;
    uint64_t handled_net;
    uint64_t scoped;
};

struct ll_beneath {
    uint64_t allowed;
    int32_t parent_fd;
} __attribute__((packed));

#endif
