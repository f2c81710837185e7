"""seccomp: a filter in the kernel that refuses system calls, for good.

Refused are new processes and programs, sockets, whatever reaches into other processes, changes modes, owners or times
of files (which Landlock leaves free), or keeps something after the process has ended. The filter is a program of the
classic BPF, as ``linux/seccomp.h`` and ``linux/filter.h`` describe it; the numbers are those of ``asm/unistd.h``.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys

ALLOW, REFUSE, KILL = 0x7FFF0000, 0x00050000, 0x80000000
LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER, MACHINE, ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
CLONE_THREAD = 0x10000
LAST = 462  # later calls than these are unknown here, and missing for the process

# name -> its number on x86_64 and on aarch64; -1 where there is none
REFUSED: dict[str, tuple[int, int]] = {
    "fork": (57, -1), "vfork": (58, -1), "execve": (59, 221), "execveat": (322, 281),
    "socket": (41, 198), "socketpair": (53, 199), "connect": (42, 203), "bind": (49, 200), "listen": (50, 201),
    "accept": (43, 202), "accept4": (288, 242), "sendto": (44, 206), "sendmsg": (46, 211), "sendmmsg": (307, 269),
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_open": (434, 434), "pidfd_getfd": (438, 438), "pidfd_send_signal": (424, 424), "process_madvise": (440, 440),
    "tkill": (200, 130), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240),
    "mknod": (133, -1), "mknodat": (259, 33),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "unshare": (272, 97),
    "setns": (308, 268), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
    "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264), "quotactl": (179, 60), "quotactl_fd": (443, 443),
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "reboot": (169, 142), "acct": (163, 89),
    "swapon": (167, 224), "swapoff": (168, 225), "syslog": (103, 116), "personality": (135, 92),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "clock_adjtime": (305, 266), "adjtimex": (159, 171),
    "sethostname": (170, 161), "setdomainname": (171, 162), "iopl": (172, -1), "ioperm": (173, -1),
    "vhangup": (153, 58), "memfd_create": (319, 279), "memfd_secret": (447, 447), "fanotify_init": (300, 262),
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "semget": (64, 190), "semop": (65, 193),
    "semctl": (66, 191), "msgget": (68, 186), "msgsnd": (69, 189), "msgctl": (71, 187),
    "mq_open": (240, 180), "mq_unlink": (241, 181),
    "setpriority": (141, 140), "ioprio_set": (251, 30), "sched_setaffinity": (203, 122),
    "sched_setscheduler": (144, 119), "sched_setparam": (142, 118), "sched_setattr": (314, 274),
    "migrate_pages": (256, 238), "move_pages": (279, 239),
}  # fmt: skip
# what honest code does to its own files; it is told that it was done, and nothing is done
IGNORED: dict[str, tuple[int, int]] = {
    "chmod": (90, -1), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "chown": (92, -1), "fchown": (93, 55), "lchown": (94, -1), "fchownat": (260, 54),
    "utime": (132, -1), "utimes": (235, -1), "futimesat": (261, -1), "utimensat": (280, 88),
}  # fmt: skip
CLONE, CLONE3, KILL_CALL, TGKILL = (56, 220), (435, 435), (62, 129), (234, 131)
PRCTL, PRLIMIT = (157, 167), (302, 261)
PDEATHSIG = 1
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # column of the tables, AUDIT_ARCH


def available() -> bool:
    """Whether this kernel takes such a filter, for a processor whose numbers are known here."""
    if not sys.platform.startswith("linux") or platform.machine() not in MACHINES:
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(22, 2, None, 0, 0)  # PR_SET_SECCOMP without a filter: EFAULT where filters are known
    return ctypes.get_errno() == errno.EFAULT


def program(machine: str, own: int) -> list[tuple[int, int, int, int]]:
    """The filter: (code, jump if true, jump if false, k) of each instruction. ``own`` is the process's number."""
    column, audit = MACHINES[machine]
    no, no_such, done = REFUSE | errno.EPERM, REFUSE | errno.ENOSYS, REFUSE
    steps = [(LOAD, 0, 0, MACHINE), (EQUAL, 1, 0, audit), (RETURN, 0, 0, KILL), (LOAD, 0, 0, NUMBER)]
    steps += [(AT_LEAST, 0, 1, LAST + 1), (RETURN, 0, 0, no_such)]
    for table, answer in ((REFUSED, no), (IGNORED, done)):
        for numbers in table.values():
            if numbers[column] >= 0:
                steps += [(EQUAL, 0, 1, numbers[column]), (RETURN, 0, 0, answer)]
    steps += [(EQUAL, 0, 1, CLONE3[column]), (RETURN, 0, 0, no_such)]  # then the C library calls clone
    # a thread may be made, and no process
    steps += [(EQUAL, 0, 4, CLONE[column]), (LOAD, 0, 0, ARGUMENTS), (ANY_BIT, 1, 0, CLONE_THREAD)]
    steps += [(RETURN, 0, 0, no), (RETURN, 0, 0, ALLOW)]
    for call in (KILL_CALL, TGKILL):  # a process may signal itself alone
        steps += [(EQUAL, 0, 4, call[column]), (LOAD, 0, 0, ARGUMENTS), (EQUAL, 1, 0, own)]
        steps += [(RETURN, 0, 0, no), (RETURN, 0, 0, ALLOW)]
    # what ends it with its parent stays on
    steps += [(EQUAL, 0, 4, PRCTL[column]), (LOAD, 0, 0, ARGUMENTS), (EQUAL, 0, 1, PDEATHSIG)]
    steps += [(RETURN, 0, 0, no), (RETURN, 0, 0, ALLOW)]
    # limits of the process itself may be read and lowered; raising them takes a power that it gave up
    steps += [(EQUAL, 0, 4, PRLIMIT[column]), (LOAD, 0, 0, ARGUMENTS), (EQUAL, 1, 0, 0)]
    steps += [(RETURN, 0, 0, no), (RETURN, 0, 0, ALLOW)]
    return [*steps, (RETURN, 0, 0, ALLOW)]


def restrict() -> None:
    """Put the filter on this process, all its threads and whatever they start.

    Raises ``OSError`` if the kernel refuses.
    """
    code = b"".join(struct.pack("<HBBI", *step) for step in program(platform.machine(), os.getpid()))
    filters = ctypes.create_string_buffer(code, len(code))
    header = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", len(code) // 8, ctypes.addressof(filters)), 16)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) or libc.syscall(317 if platform.machine() == "x86_64" else 277, 1, 1, header):
        error = ctypes.get_errno()
        raise OSError(error, f"seccomp: {os.strerror(error)}")
