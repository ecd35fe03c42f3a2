/* TLS is verified: a certificate that nobody vouches for is refused at once, one that is vouched
 * for is fine. Made here with the openssl program. */
#include "llm/fixture.h"

static char folder[] = "/tmp/cutepilot-llm-XXXXXX";

static bool make_certificate(const char *certificate, const char *key) {
    const char *argv[] = {"openssl",
                          "req",
                          "-x509",
                          "-newkey",
                          "ec",
                          "-pkeyopt",
                          "ec_paramgen_curve:P-256",
                          "-nodes",
                          "-days",
                          "2",
                          "-subj",
                          "/CN=localhost",
                          "-addext",
                          "subjectAltName=IP:127.0.0.1",
                          "-out",
                          certificate,
                          "-keyout",
                          key,
                          NULL};
    struct child c;
    return child_start(&(struct child_spec){.argv = argv}, &c, &err) && child_wait(&c) == 0;
}

static void ask_over_tls(const char *trusted, enum err_kind error, const char *want) {
    struct subject s;
    struct outcome o;
    char url[64];
    struct provider_options options = options_of("openai");
    snprintf(url, sizeof url, "https://127.0.0.1:%d/echo/v1", server_port);
    options.url = url;
    setenv("CURL_CA_BUNDLE", trusted, 1);
    CHECKF(subject_open(&s, options), "%s", err.text);
    ask(&s, "coder", 0, "over TLS", &o);
    CHECK(wait_for(&o, 1, 20000));
    const char *got = o.err.kind ? o.err.text : o.text.p;
    CHECKF(o.err.kind == error && strstr(got, want), "%s", got);
    CHECK(s.notices.n == 0);
    buf_release(&o.text);
    subject_close(&s);
}

static void certificates(void) {
    char certificate[128], key[128];
    snprintf(certificate, sizeof certificate, "%s/cert.pem", folder);
    snprintf(key, sizeof key, "%s/key.pem", folder);
    if (!make_certificate(certificate, key))
        SKIP("no openssl program");
    CHECKF(server_start(certificate, key), "%s", err.text);
    const char *skip = fixture_open();
    if (skip)
        SKIP(skip);
    ask_over_tls("", ERR_ENV, "certificate");
    ask_over_tls("/nonexistent.pem", ERR_ENV, "certificate");
    ask_over_tls(certificate, ERR_NONE, "over TLS");
}

static const struct tap_case cases[] = {{"certificates are verified", certificates}};

int main(void) {
    if (!mkdtemp(folder))
        return 1;
    int failed = tap_main(cases, sizeof cases / sizeof *cases);
    server_stop();
    loop_free(loop);
    dir_remove_tree(folder, &err);
    return failed;
}
