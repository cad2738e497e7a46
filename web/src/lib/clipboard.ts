/** Copies a text, also where the browser hides its clipboard: on pages that come over plain HTTP. */
export async function copyText(text: string): Promise<void> {
  // The type says otherwise, but it is undefined there.
  const clipboard = navigator.clipboard as Clipboard | undefined;
  if (clipboard !== undefined) await clipboard.writeText(text);
  else copySelection(text);
}

function copySelection(text: string): void {
  const field = document.createElement('textarea');
  const focused = document.activeElement;
  field.value = text;
  document.body.append(field);
  field.select();
  // Deprecated, but there is nothing else on these pages.
  const isCopied = document.execCommand('copy');
  field.remove();
  if (focused instanceof HTMLElement) focused.focus();
  if (!isCopied) throw new Error('the browser does not let this page copy: select the text instead');
}
