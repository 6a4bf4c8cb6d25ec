// Offline: what was visited is kept; the engine and the shell are fetched once for each release. VERSION and FILES are filled in by the build.
const VERSION = "{{version}}", NAME = `oomdoctor-${VERSION}`;
const FILES = {{files}};  // {shell: [...], engine: [...], docs: [...]}, relative to this script

const put = async (paths) => {
  const cache = await caches.open(NAME);
  await Promise.all(paths.map(async (path) => {
    const url = new URL(path, self.registration.scope).href;
    if (await cache.match(url)) return;
    const answer = await fetch(url, {cache: "no-cache"});
    if (answer.ok) await cache.put(url, answer);
  }));
};

self.addEventListener("install", (event) => event.waitUntil(put(FILES.shell).then(() => self.skipWaiting())));
self.addEventListener("activate", (event) => event.waitUntil((async () => {
  for (const name of await caches.keys()) if (name.startsWith("oomdoctor-") && name !== NAME) await caches.delete(name);
  await self.clients.claim();
})()));
self.addEventListener("message", (event) => {
  const paths = FILES[event.data?.keep];
  if (paths) event.waitUntil(put(paths).then(() => event.source?.postMessage({kept: event.data.keep}), () => {}));
});
self.addEventListener("fetch", (event) => {
  const {request} = event, url = new URL(request.url);
  if (request.method !== "GET" || url.origin !== self.location.origin) return;
  event.respondWith((async () => {
    const cache = await caches.open(NAME), key = url.origin + url.pathname;
    const page = request.mode === "navigate";
    const kept = await cache.match(key) ?? (page ? await cache.match(`${key.replace(/\/?$/, "/")}index.html`) : undefined);
    if (kept && !page) return kept;
    try {
      const answer = await fetch(request);
      if (answer.ok && answer.type === "basic") await cache.put(key, answer.clone());
      return answer;
    } catch (error) {
      if (kept) return kept;
      throw error;
    }
  })());
});
