/*
 * test_package_lock.h - locks for tests: one of each language that is as it should be. Plain texts; any thread.
 */
#pragma once

#define LOCK_HASH "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define LOCK_REST "\"hash\":\"" LOCK_HASH "\",\"size_bytes\":100,\"license\":\"MIT\",\"extras\":[],\"yanked\":false,\"install_script\":false,\"registry_hash\":true,"

static const char lock_python[] =
        "{\"schema\":\"reeve.lock/1\",\"language\":\"python\","
        "\"runtime\":{\"tag\":\"cp311-linux_x86_64\",\"version\":\"3.11\",\"interpreter\":\"/usr/bin/python3\"},\"packages\":["
        "{\"name\":\"idna\",\"version\":\"3.4\",\"file\":\"idna-3.4-py3-none-any.whl\",\"url\":\"https://registry.example/idna-3.4-py3-none-any.whl\",\"kind\":\"wheel\"," LOCK_REST
        "\"direct\":false,\"requested\":\"\",\"published_at\":1663192445,\"path\":[\"requests\",\"idna\"]},"
        "{\"name\":\"requests\",\"version\":\"2.31.0\",\"file\":\"requests-2.31.0-py3-none-any.whl\",\"url\":\"http://127.0.0.1:8080/requests-2.31.0-py3-none-any.whl\",\"kind\":\"wheel\"," LOCK_REST
        "\"direct\":true,\"requested\":\"requests==2.31.0\",\"path\":[\"requests\"]}]}";

static const char lock_javascript[] =
        "{\"schema\":\"reeve.lock/1\",\"language\":\"javascript\","
        "\"runtime\":{\"tag\":\"node-linux-x64-glibc\",\"version\":\"\",\"interpreter\":\"/usr/bin/node\"},\"packages\":["
        "{\"name\":\"@a/x\",\"version\":\"1.0.0\",\"file\":\"x-1.0.0.tgz\",\"url\":\"https://registry.example/@a/x/-/x-1.0.0.tgz\",\"kind\":\"npm\"," LOCK_REST
        "\"direct\":true,\"requested\":\"@a/x@^1\",\"path\":[\"@a/x\"],\"at\":[\"node_modules/@a/x\"],"
        "\"integrity\":\"sha512-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==\"},"
        "{\"name\":\"JSONStream\",\"version\":\"1.3.5\",\"file\":\"JSONStream-1.3.5.tgz\",\"url\":\"https://registry.example/JSONStream/-/JSONStream-1.3.5.tgz\",\"kind\":\"npm\"," LOCK_REST
        "\"direct\":false,\"requested\":\"\",\"path\":[\"@a/x\",\"JSONStream\"],\"at\":[\"node_modules/@a/x/node_modules/alias\",\"node_modules/JSONStream\"],"
        "\"integrity\":\"sha512-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==\"},"
        "{\"name\":\"JSONStream\",\"version\":\"1.4.0-rc.1\",\"file\":\"JSONStream-1.4.0-rc.1.tgz\",\"url\":\"https://registry.example/JSONStream/-/JSONStream-1.4.0-rc.1.tgz\",\"kind\":\"npm\"," LOCK_REST
        "\"direct\":false,\"requested\":\"\",\"path\":[\"@a/x\",\"JSONStream\"],\"at\":[\"node_modules/@a/x/node_modules/JSONStream\"],"
        "\"integrity\":\"sha512-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==\"}]}";
