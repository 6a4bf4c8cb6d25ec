ramalama serve deepseek-r1:70b
