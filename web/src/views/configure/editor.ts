import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap, completionStatus } from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands';
import { json } from '@codemirror/lang-json';
import { bracketMatching, foldGutter, HighlightStyle, indentOnInput, syntaxHighlighting } from '@codemirror/language';
import { setDiagnostics, type Diagnostic } from '@codemirror/lint';
import { highlightSelectionMatches, searchKeymap, searchPanelOpen } from '@codemirror/search';
import { EditorState } from '@codemirror/state';
import { EditorView, highlightActiveLine, keymap, lineNumbers } from '@codemirror/view';
import { tags } from '@lezer/highlight';
import { findNodeAtLocation, type JSONPath } from 'jsonc-parser';
import { readTree } from '../../lib/config_text';
import type { Schema } from './json_schema';
import { shorten } from '../../lib/text';
import type { ConfigDiagnostic } from '../../machine/configuration';
import { completeFrom } from './completion';
import { parsePointer } from './resources';

const COLORS = HighlightStyle.define([
  { tag: tags.propertyName, color: 'var(--series-1)' },
  { tag: tags.string, color: 'var(--series-3)' },
  { tag: tags.number, color: 'var(--series-2)' },
  { tag: [tags.bool, tags.null], color: 'var(--series-4)' },
  { tag: [tags.lineComment, tags.blockComment], color: 'var(--text-soft)' },
]);

const LOOK = EditorView.theme({
  '&': { height: '100%', color: 'var(--text)', backgroundColor: 'var(--surface)', fontSize: '13px' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.5' },
  '.cm-content': { caretColor: 'var(--text)' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '&.cm-focused .cm-selectionBackground, .cm-selectionBackground, ::selection': {
    backgroundColor: 'color-mix(in srgb, var(--accent) 25%, transparent) !important',
  },
  '.cm-gutters': { backgroundColor: 'var(--surface)', color: 'var(--text-soft)', border: 'none' },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'color-mix(in srgb, var(--raised) 60%, transparent)' },
  '.cm-tooltip': { backgroundColor: 'var(--surface)', color: 'var(--text)', border: '1px solid var(--line-strong)' },
  '.cm-tooltip-autocomplete ul li[aria-selected]': { backgroundColor: 'var(--accent-fill)', color: 'var(--on-accent)' },
  '.cm-panels': { backgroundColor: 'var(--raised)', color: 'var(--text)' },
  // Instead of images in data addresses, which the page's policy forbids.
  '.cm-lintRange': { backgroundImage: 'none', textDecoration: 'underline wavy var(--warning)' },
  '.cm-lintRange-error': { backgroundImage: 'none', textDecoration: 'underline wavy var(--unhealthy)' },
  '.cm-lintRange-warning, .cm-lintRange-info': { backgroundImage: 'none' },
  '.cm-diagnostic': { fontFamily: 'var(--sans)' },
});

const MAX_MARKED = 200;
const MAX_MESSAGE = 600;
const HELP_ID = 'help';

/** CodeMirror itself lets Tab leave for two seconds after Escape. */
export const LEAVE_HELP = 'Tab indents. Press Escape, then Tab, to leave the editor.';

export interface EditorOptions {
  readonly parent: HTMLElement;
  readonly text: string;
  readonly schema: Schema;
  readonly readOnly: boolean;
  readonly onchange: (text: string) => void;
}

/** An editor of a configuration. Its styles live in a shadow root, where the page's policy allows them. */
export function createEditor({ parent, text, schema, readOnly, onchange }: EditorOptions): EditorView {
  const root = parent.shadowRoot ?? parent.attachShadow({ mode: 'open' });
  root.replaceChildren(makeHelp(parent.ownerDocument));
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc: text,
      extensions: [
        lineNumbers(),
        foldGutter(),
        history(),
        indentOnInput(),
        bracketMatching(),
        closeBrackets(),
        highlightActiveLine(),
        highlightSelectionMatches(),
        json(),
        syntaxHighlighting(COLORS),
        autocompletion({ override: [completeFrom(schema)], maxRenderedOptions: 60 }),
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({
          'aria-label': 'Configuration as JSON',
          'aria-describedby': HELP_ID,
          tabindex: '0',
        }),
        EditorState.readOnly.of(readOnly),
        keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...searchKeymap, ...historyKeymap, ...completionKeymap, indentWithTab]),
        LOOK,
        EditorView.updateListener.of((update) => update.docChanged && onchange(update.state.doc.toString())),
      ],
    }),
  });
  keepEscape(view);
  return view;
}

/** For screen readers; inside of the shadow root, because a description cannot be outside. */
function makeHelp(document: Document): HTMLElement {
  const help = document.createElement('span');
  help.id = HELP_ID;
  help.hidden = true;
  help.textContent = LEAVE_HELP;
  return help;
}

/** An Escape that closes something in the editor is not one of the two that stop the machine. */
function keepEscape(view: EditorView): void {
  let closes = false;
  const isInPanel = (target: EventTarget | null) => target instanceof Element && target.closest('.cm-panels') !== null;
  view.dom.addEventListener(
    'keydown',
    (event) => {
      const isOpen = completionStatus(view.state) === 'active' || searchPanelOpen(view.state) || isInPanel(event.target);
      closes = event.key === 'Escape' && isOpen;
    },
    { capture: true },
  );
  view.dom.addEventListener('keydown', (event) => closes && event.stopPropagation());
}

export function showText(view: EditorView, text: string): void {
  if (view.state.doc.toString() === text) return;
  view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } });
}

/** Underlines what the machine says is wrong, at its place. */
export function showDiagnostics(view: EditorView, diagnostics: readonly ConfigDiagnostic[]): void {
  const text = view.state.doc.toString();
  const tree = readTree(text);
  const marks = diagnostics.map((each): Diagnostic => {
    const node = tree && findNodeAtLocation(tree, parsePointer(each.pointer));
    const start = offsetOf(view, each) ?? node?.offset ?? 0;
    const word = /^"(?:[^"\\\n]|\\.)*"?|^[\w.-]+/.exec(text.slice(start, start + MAX_MARKED));
    const end = start + (word?.[0].length ?? 1);
    return {
      from: Math.min(start, text.length),
      to: Math.min(Math.max(end, start), text.length),
      severity: each.severity === 'error' ? 'error' : each.severity === 'warning' ? 'warning' : 'info',
      message: shorten([each.message, each.effect, each.hint].filter(Boolean).join('; '), MAX_MESSAGE),
      source: each.code,
    };
  });
  view.dispatch(setDiagnostics(view.state, marks));
}

/** Shows the place of a diagnostic, and puts the cursor there. */
export function goToDiagnostic(view: EditorView, diagnostic: ConfigDiagnostic): void {
  goTo(view, offsetOf(view, diagnostic) ?? 0);
}

/** Shows a part of the document, or what is to contain it, and puts the cursor there. */
export function goToPart(view: EditorView, path: JSONPath): void {
  const tree = readTree(view.state.doc.toString());
  const ends = Array.from({ length: path.length + 1 }, (_, steps) => path.length - steps);
  const found = tree && ends.map((end) => findNodeAtLocation(tree, path.slice(0, end))).find((node) => node !== undefined);
  // At the key of a value, which may be on a line before.
  goTo(view, (found?.parent?.type === 'property' ? found.parent.offset : found?.offset) ?? 0);
}

function goTo(view: EditorView, position: number): void {
  view.dispatch({ selection: { anchor: position }, effects: EditorView.scrollIntoView(position, { y: 'center' }) });
  view.focus();
}

function offsetOf(view: EditorView, diagnostic: ConfigDiagnostic): number | undefined {
  if (diagnostic.line === undefined || diagnostic.line > view.state.doc.lines) return undefined;
  const line = view.state.doc.line(Math.max(1, diagnostic.line));
  return Math.min(line.from + Math.max(0, (diagnostic.column ?? 1) - 1), line.to);
}
