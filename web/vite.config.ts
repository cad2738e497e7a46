import { svelte } from '@sveltejs/vite-plugin-svelte';
import { svelteTesting } from '@testing-library/svelte/vite';
import { defineConfig } from 'vitest/config';

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
  test: {
    // Files share what they import, which would take longer than their tests.
    isolate: false,
    projects: [
      { extends: true, test: { name: 'units', include: ['src/**/*.test.ts'], exclude: ['src/**/*.svelte.test.ts'] } },
      {
        extends: true,
        plugins: [svelteTesting()],
        test: {
          name: 'components',
          include: ['src/**/*.svelte.test.ts'],
          environment: 'jsdom',
          setupFiles: 'src/cards/testing/setup.ts',
          testTimeout: 30_000,
        },
      },
    ],
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
