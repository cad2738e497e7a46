import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';

// Where `npm run dev` finds a machine.
const MACHINE = process.env.COGWORK_MACHINE ?? 'http://localhost:8080';

export default defineConfig({
  plugins: [svelte()],
  build: {
    outDir: '../src/cogwork/control/site',
    emptyOutDir: true,
    target: 'es2022',
    // The page's policy allows no inline scripts and no data addresses for styles.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: {
    proxy: Object.fromEntries(
      ['.json', '.jsonl', '/camera/', '/configuration/', '/rpc/', '/viam', '/proto.'].map((part) => [
        `^/[^?]*${part.replaceAll('.', '\\.')}`,
        { target: MACHINE, changeOrigin: true },
      ]),
    ),
  },
});
