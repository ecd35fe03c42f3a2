/* An NVRTC of another age: all it does is tell a version that is too old. */
int nvrtcVersion(int *major, int *minor);

int nvrtcVersion(int *major, int *minor) {
    *major = 11;
    *minor = 8;
    return 0;
}
