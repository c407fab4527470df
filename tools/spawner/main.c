/*
 * main.c - the spawner as a program of its own: for the tests, which drive it by its channel
 *
 *     reeve-spawner CONFIG              serve the channel on descriptor 3
 *     reeve-spawner CONFIG --explain    print what the host gives, for doctor
 */
#include "start.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
        bool is_explaining = argc == 3 && !strcmp(argv[2], "--explain");

        if (argc != 2 && !is_explaining) {
                fprintf(stderr, "usage: reeve-spawner CONFIG [--explain]\n");
                return 2;
        }
        return spawner_main(argv[1], is_explaining ? SPAWNER_EXPLAIN : SPAWNER_RUN, NULL);
}
