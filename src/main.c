#include "ui/ui.h"

extern char **environ;

int main(int argc, char **argv) {
    return ui_main(argc, argv, environ);
}
