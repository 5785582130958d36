/*
 * Functions that pawl does not call, whoever writes the code: unbounded copies,
 * hidden state, shells. compiler.h includes this, so it holds everywhere. A use
 * becomes a call of a function that does not exist and whose name says what to
 * take instead; with warnings as errors that ends the build. Only calls are
 * caught: third-party headers may go on naming a parameter "gets" (a poisoned
 * word could not). The system headers come first, so theirs stay whole.
 */
#ifndef BASE_BANNED_H
#define BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#undef strcpy
#undef strcat
#undef strncpy
#undef strncat
#undef stpcpy
#undef sprintf
#undef vsprintf
#undef alloca

#define strcpy(...)    banned_strcpy_use_struct_buf_or_str_copy()
#define strcat(...)    banned_strcat_use_struct_buf()
#define strncpy(...)   banned_strncpy_use_str_copy()
#define strncat(...)   banned_strncat_use_struct_buf()
#define stpcpy(...)    banned_stpcpy_use_struct_buf()
#define strtok(...)    banned_strtok_use_strcspn()
#define strerror(...)  banned_strerror_use_err_errno()
#define sprintf(...)   banned_sprintf_use_snprintf()
#define vsprintf(...)  banned_vsprintf_use_vsnprintf()
#define gets(...)      banned_gets()
#define atoi(...)      banned_atoi_use_parse_i64()
#define atol(...)      banned_atol_use_parse_i64()
#define atof(...)      banned_atof_use_str_to_double()
#define alloca(...)    banned_alloca_use_an_arena()
#define system(...)    banned_system_no_shell()
#define popen(...)     banned_popen_no_shell()
#define tmpnam(...)    banned_tmpnam_use_fs_open_temp()
#define mktemp(...)    banned_mktemp_use_fs_open_temp()
#define rand(...)      banned_rand_use_rand_u64()
#define random(...)    banned_random_use_rand_u64()
#define localtime(...) banned_localtime_use_civil()
#define gmtime(...)    banned_gmtime_use_civil()
#define ctime(...)     banned_ctime_use_civil()
#define asctime(...)   banned_asctime_use_civil()

#endif
