/* What the files of the result store share. */
#ifndef RUN_RESULT_PRIVATE_H
#define RUN_RESULT_PRIVATE_H

struct result_store {
    char *folder;
    int folder_fd;
};

#endif
