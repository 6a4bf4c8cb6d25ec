"""moments"""
