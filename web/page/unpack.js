// The script of the page is packed. The policy names its hash, too, so that nothing else can take its place.
{
  const packed = Uint8Array.from(atob(document.getElementById('page-script').textContent), (letter) => letter.charCodeAt(0));
  const unpacked = () => new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'))).text();
  const refuse = () => document.getElementById('page').append('This browser is too old for the page: it needs Chrome 95, Firefox 113, Safari 16.4, or newer.');
  if (globalThis.DecompressionStream) unpacked().then((text) => document.body.append(Object.assign(document.createElement('script'), { textContent: text })));
  else refuse();
}
