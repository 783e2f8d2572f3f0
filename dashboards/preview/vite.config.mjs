import react from '@vitejs/plugin-react';

// Everything is bundled into files of this host: the server's content policy forbids any other origin.
export default {
  plugins: [react()],
  define: { 'process.env': {}, 'process.env.NODE_ENV': '"production"' },
  build: { outDir: 'dist', chunkSizeWarningLimit: 20000, reportCompressedSize: false },
  logLevel: 'warn',
};
