import { svelteTesting } from '@testing-library/svelte/vite';
import { defineConfig, mergeConfig } from 'vitest/config';
import build from './vite.config.ts';

// A file of its own, so that a build of the page needs nothing of the tests.
export default mergeConfig(
  build,
  defineConfig({
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
  }),
);
